"""Everything an operator can set, each by an environment variable FIRSTBAD_<NAME>. Read once, by the wiring."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    IPvAnyAddress,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

#: What a worker alone is told, which stands in the same environment.
OF_WORKERS = frozenset(
    [
        "cache_budget",
        "compiler_cache",
        "docker_host",
        "environment_timeout_s",
        "environments",
        "fetch_timeout_s",
        "gpu_dir",
        "gpu_wait_s",
        "gpus",
        "hidden",
        "labels",
        "model_cache",
        "node",
        "parent_fd",
        "pass_env",
        "pull_timeout_s",
        "roles",
        "sandbox_uid",
        "secrets",
        "visible",
        "work_dir",
    ]
)
SandboxName = Literal["process", "docker"]
_PASSWORD = re.compile(r"://[^/@\s]+@")
#: The same in what should be an address and is none.
_BEFORE_HOST = re.compile(r"^([a-z0-9+]*://)?.*@", re.DOTALL)

_AGE = re.compile(r"([0-9]{1,5}) ?([mhdw])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def _age(written: object) -> object:
    """Seconds of "30d"; a unit must stand there, since 30 may be meant as either."""
    found = _AGE.fullmatch(str(written).strip()) if isinstance(written, str) else None
    if isinstance(written, str) and (found is None or int(found[1]) == 0):
        raise ValueError("it is no age: a number and m (minutes), h, d or w")
    return float(found[1]) * _SECONDS[found[2]] if found else written


def _rate(written: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,8}/(second|minute|hour|day)", written):
        raise ValueError("it is no rate: a number, / and second, minute, hour or day")
    return written


#: In seconds.
Age = Annotated[float, BeforeValidator(_age), Field(gt=0)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    home: Path = Field(default=Path("~/.local/share/firstbad"), description="folder for all that the service keeps")
    database_url: str | None = Field(default=None, description="SQLAlchemy URL; without it SQLite in the home")
    redis_url: str | None = Field(
        default=None,
        pattern="^rediss?://",
        description="redis:// or rediss:// URL; `firstbad up` starts its own",
        examples=["redis://host:6379/0"],
    )
    store_url: str | None = Field(default=None, description="fsspec URL of the artifact store; without it in the home")
    recipes_dir: Path | None = Field(default=None, description="folder of recipes besides the ones that come along")
    host: IPvAnyAddress = Field(
        default=IPv4Address("127.0.0.1"), description="address that the API listens on", examples=["127.0.0.1"]
    )
    allowed_hosts: Annotated[frozenset[str], NoDecode] = Field(
        default=frozenset(), description="names that clients use for this service besides those of loopback"
    )
    port: int = Field(default=8377, ge=0, le=65535, description="of the API", examples=["8377"])
    slots: int = Field(default=2, ge=1, le=256, description="builds and probes at once on this machine", examples=["4"])
    sandboxes: Annotated[frozenset[SandboxName] | None, NoDecode] = Field(
        default=None, description="that requests may use", examples=["process,docker"]
    )
    default_sandbox: SandboxName | None = Field(
        default=None, description="of a request that names none", examples=["process"]
    )
    allow_file_repos: bool | None = Field(
        default=None,
        description="whether a repository may be a folder of this machine; without it where callers need no token",
        examples=["true"],
    )
    auth: Literal["open", "required"] | None = Field(
        default=None,
        description="whether callers need a token; without it they do on all addresses but those of loopback",
        examples=["required"],
    )
    public: bool = Field(
        default=False, description="whether anybody may read where tokens are required", examples=["false"]
    )
    rate: Annotated[str, AfterValidator(_rate)] = Field(
        default="1200/minute",
        description="requests of one token, or of one address without one",
        examples=["1200/minute"],
    )
    site: str | None = Field(
        default=None,
        pattern=r"^(https://[^/\s@?#]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?)$",
        description="URL under which browsers know this service; https, but on loopback",
        examples=["https://firstbad.example.org"],
    )
    github_client_id: str | None = Field(
        default=None, description="of the OAuth app by which people sign in", examples=["Iv1.8a61f9b3a7aba766"]
    )
    github_client_secret: SecretStr | None = Field(default=None, description="of that app")
    github_url: str = Field(
        default="https://github.com",
        pattern=r"^https?://[^/\s]+$",
        description="of an Enterprise Server instead",
        examples=["https://github.example.org"],
    )
    github_api_url: str = Field(
        default="https://api.github.com",
        pattern=r"^https?://[^\s?#]*[^/\s?#]$",
        description="of its API",
        examples=["https://github.example.org/api/v3"],
    )
    sign_in: str = Field(
        default="",
        description="who may do what after signing in by GitHub",
        examples=["ann=admin,acme/*=read,acme/gpu-team=operate"],
    )
    policies: str = Field(
        default="",
        description="who may ask for what: a YAML file, or JSON; docs/policies.md",
        examples=["/etc/firstbad/policies.yaml"],
    )
    repo_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="that repositories may be on; any without",
        examples=["github.com,*.example.org"],
    )
    private_networks: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(
        default=(),
        description="whose addresses may be reached though they are not public",
        examples=["10.1.0.0/16,fd00::/8"],
    )
    store_budget: ByteSize | None = Field(
        default=None, description="of wheels, like 200GB; without it all are kept", examples=["200GB"]
    )
    keep_wheels: Age | None = Field(
        default=None, description="since somebody last asked for one, like 60d; without it for ever", examples=["60d"]
    )
    keep_logs: Age | None = Field(
        default=None, description="since the run ended, like 30d; without it for ever", examples=["30d"]
    )
    log_budget: ByteSize | None = Field(
        default=None, description="of logs, like 20GB; without it all are kept", examples=["20GB"]
    )
    ahead: int = Field(
        default=4, ge=0, description="builds of a bisection made before a probe wants them; 0 is none", examples=["4"]
    )
    sweep_s: float = Field(default=5.0, gt=0, description="seconds between two sweeps", examples=["5"])
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="of the service's own log", examples=["INFO"]
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="how log lines are written", examples=["text", "json"]
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="where the control worker tells its metrics; 0 is nowhere",
        examples=["9377"],
    )
    otlp_endpoint: str = Field(
        default="",
        pattern=r"^(https?://.+)?$",
        description="where traces go, by OTLP over HTTP; nothing is traced without",
        examples=["http://collector:4318"],
    )

    @field_validator("sandboxes", "allowed_hosts", "repo_hosts", "private_networks", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("redis_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        try:
            found = urlsplit(value or "")
            wrong = found.port == 0 or "@" in found.path
        except ValueError:
            wrong = True
        if wrong:
            raise ValueError("it names no host and port; write / in a password as %2F, and # as %23")
        return value

    @property
    def allowed_sandboxes(self) -> frozenset[SandboxName]:
        """What others can reach runs their code in containers alone, unless the operator names more."""
        if self.sandboxes is not None:
            return self.sandboxes
        return frozenset({"process", "docker"} if self.host.is_loopback else {"docker"})

    @property
    def open(self) -> bool:
        """Whether whoever reaches the service may do all."""
        return self.auth == "open" if self.auth is not None else self.host.is_loopback

    @property
    def file_repos(self) -> bool:
        """Whether a folder of this machine may be read as a repository, with all that it holds."""
        return self.open if self.allow_file_repos is None else self.allow_file_repos

    @property
    def usual_sandbox(self) -> SandboxName:
        if self.default_sandbox is not None:
            return self.default_sandbox
        return "process" if "process" in self.allowed_sandboxes else "docker"

    @property
    def home_dir(self) -> Path:
        return self.home.expanduser().absolute()

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.home_dir / 'firstbad.sqlite'}"

    @property
    def store(self) -> str:
        return self.store_url or str(self.home_dir / "store")

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs that may hold passwords."""
        return tuple(url for url in (self.database, self.redis_url, self.store_url, self.otlp_endpoint) if url)

    @property
    def mirrors_dir(self) -> Path:
        return self.home_dir / "mirrors"


class Inherited(BaseSettings):
    """What `firstbad up` hands to its children: file descriptors, and to the API by what it is known there."""

    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    parent_fd: int
    listen_fd: int
    up_key: str = Field(default="", repr=False)


def complaints(error: ValidationError) -> list[str]:
    """A line for each setting that is wrong: the variable, what it holds, and what it may hold."""
    lines = []
    for wrong in error.errors(include_url=False):
        name, said = str(wrong["loc"][0]), wrong["msg"]
        value = _PASSWORD.sub("://***@", str(wrong["input"]))
        if name.endswith("_url"):
            value = _BEFORE_HOST.sub(r"\1***@", value)
        examples = Settings.model_fields[name].examples if name in Settings.model_fields else None
        like = f"; write it like {examples[0]}" if examples else ""
        lines.append(f"FIRSTBAD_{name.upper()}: {value!r}: {said[:1].lower()}{said[1:]}{like}")
    return lines


def environment() -> dict[str, str]:
    """The environment that child processes start from."""
    return dict(os.environ)


def misspelt() -> dict[str, str]:
    """Variables that are no setting of either side, each with the one that was probably meant."""
    known = {*Settings.model_fields, *OF_WORKERS, "listen_fd", "parent_fd", "up_key", "token", "url"}
    found = {
        name: name.removeprefix("FIRSTBAD_").lower() for name in sorted(os.environ) if name.startswith("FIRSTBAD_")
    }
    near = {name: get_close_matches(said, known, 1, 0.8) for name, said in found.items() if said not in known}
    return {name: f"FIRSTBAD_{like[0].upper()}" for name, like in near.items() if like}
