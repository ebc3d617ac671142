"""The worker's settings, from the environment (FIRSTBAD_…), frozen. The only place that reads the environment."""

from __future__ import annotations

import os
import re
import socket
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

#: What the service alone is told, which stands in the same environment.
OF_SERVICES = frozenset(
    [
        "ahead",
        "allowed_hosts",
        "auth",
        "database_url",
        "default_sandbox",
        "github_api_url",
        "github_client_id",
        "github_client_secret",
        "github_url",
        "home",
        "host",
        "keep_logs",
        "keep_wheels",
        "log_budget",
        "log_level",
        "metrics_port",
        "policies",
        "port",
        "public",
        "rate",
        "recipes_dir",
        "sign_in",
        "site",
        "store_budget",
        "sweep_s",
    ]
)
SandboxKind = Literal["docker", "process"]
Role = Literal["build", "run"]

#: Passed into sandboxes that have a network, so that installers get through proxies and private authorities.
PASSED = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)

#: What git on the node needs besides, to reach repositories with the operator's own keys.
GIT_NEEDS = ("PATH", "HOME", "USER", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "XDG_RUNTIME_DIR")

#: Of a store's keys, those that are secret.
KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: As in 8xFake-80GB.
_CARDS = re.compile(r"(?P<count>[1-9][0-9]{0,2})x(?P<model>[A-Za-z][A-Za-z0-9_.-]*?(?P<gib>[1-9][0-9]{0,4})GB)")
MOST_CARDS = 256
#: As requests may write them.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:=/+-]{0,62}")
MOST_LABELS = 50
_PASSWORD = re.compile(r"://[^/@\s]+@")
#: The same in what should be an address and is none.
_BEFORE_HOST = re.compile(r"^([a-z0-9+]*://)?.*@", re.DOTALL)
#: What one of a list is called, and all there are.
_NAMES = {"roles": ("role", get_args(Role)), "sandboxes": ("sandbox", get_args(SandboxKind))}


class Settings(BaseSettings):
    """`work_dir`: jobs, caches and results not yet sent. `store_url`: an fsspec URL or a path.

    `slots`: tasks at a time. `roles`: what it does. `visible`: folders of the node that process sandboxes may read.
    `hidden`: folders that no process sandbox sees, besides `work_dir` and the store. `sandbox_uid`: who runs inside
    when the worker is root.
    """

    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    redis_url: str = Field(default="redis://127.0.0.1:6379/0", pattern="^rediss?://", examples=["redis://host:6379/0"])
    work_dir: Path = Path("/var/tmp/firstbad-worker")
    store_url: str = ""
    node: str = Field(default_factory=socket.gethostname, min_length=1, max_length=200, examples=["node-1"])
    slots: int = Field(default=1, ge=1, le=1024, examples=["4"])
    roles: Annotated[tuple[Role, ...], NoDecode, Field(min_length=1)] = ("build", "run")
    sandboxes: Annotated[tuple[SandboxKind, ...], NoDecode] = ("docker", "process")
    allow_file_repos: bool = Field(default=False, examples=["true"])
    #: That repositories may be on; any without.
    repo_hosts: Annotated[tuple[str, ...], NoDecode] = Field(default=(), examples=["github.com,*.example.org"])
    #: Whose addresses may be reached though they are not public.
    private_networks: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(
        default=(), examples=["10.1.0.0/16,fd00::/8"]
    )
    pass_env: Annotated[tuple[str, ...], NoDecode] = PASSED
    docker_host: str | None = None
    visible: Annotated[tuple[Path, ...], NoDecode] = ()
    hidden: Annotated[tuple[Path, ...], NoDecode] = ()
    sandbox_uid: int = Field(default=65534, ge=1, examples=["65534"])
    parent_fd: int | None = None
    #: How many environments of dependencies are kept.
    environments: int = Field(default=8, ge=1, examples=["8"])
    #: Longest time that preparing one may take.
    environment_timeout_s: float = Field(default=3600.0, gt=0, examples=["3600"])
    #: The most that the compiler cache of one repository's builds may hold.
    compiler_cache: str = Field(default="5G", pattern=r"^[1-9][0-9]*[MGT]$", examples=["500M", "5G"])
    #: The most that caches of repositories, installers and compilers, environments, and images that were pulled may
    #: take together; the longest unused go first.
    cache_budget: str = Field(default="100G", pattern=r"^[1-9][0-9]*[MGT]$", examples=["500M", "200G"])
    #: Variables of the worker that orders may ask for by name.
    secrets: Annotated[tuple[str, ...], NoDecode] = ()
    #: A folder of models that runs may see, as a recipe says.
    model_cache: Path | None = None
    #: Cards that this node is said to have, instead of those that its driver finds: "4xA-80GB,2xB-24GB", or "none".
    gpus: str = Field(default="", examples=["8xFake-80GB"])
    #: Longest time that a probe waits for cards that others hold outside firstbad.
    gpu_wait_s: float = Field(default=300.0, ge=0, examples=["300"])
    #: Where workers of this node agree on cards; without it a folder of this user's.
    gpu_dir: Path | None = None
    #: What its operator says of this node, for requests that ask for it.
    labels: Annotated[tuple[str, ...], NoDecode] = ()
    #: How log lines are written.
    log_format: Literal["text", "json"] = Field(default="text", examples=["text", "json"])
    #: Where traces go, by OTLP over HTTP; nothing is traced without.
    otlp_endpoint: str = Field(default="", pattern=r"^(https?://.+)?$", examples=["http://collector:4318"])
    #: Longest time that pulling an image may take.
    pull_timeout_s: float = Field(default=3600.0, gt=0, examples=["3600"])
    #: Longest time that git may take to bring a commit to the node.
    fetch_timeout_s: float = Field(default=900.0, gt=0, examples=["900"])

    @field_validator(
        "roles",
        "sandboxes",
        "pass_env",
        "visible",
        "hidden",
        "secrets",
        "labels",
        "repo_hosts",
        "private_networks",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("work_dir", "model_cache", "gpu_dir")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value.expanduser().resolve() if value is not None else None

    @field_validator("redis_url")
    @classmethod
    def _address(cls, value: str) -> str:
        try:
            found = urlsplit(value)
            wrong = found.port == 0 or "@" in found.path
        except ValueError:
            wrong = True
        if wrong:
            raise ValueError("it names no host and port; write / in a password as %2F, and # as %23")
        return value

    @field_validator("node")
    @classmethod
    def _printable(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError(f"{value!r} holds what cannot be printed")
        return value

    @field_validator("secrets")
    @classmethod
    def _variables(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable; write it like HF_TOKEN,GITHUB_TOKEN")
        return value

    @field_validator("labels")
    @classmethod
    def _labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is no label; write labels like nvlink,rack=7")
        if len(value) > MOST_LABELS:
            raise ValueError(f"{len(value)} labels are more than the {MOST_LABELS} that a node may have")
        return tuple(dict.fromkeys(value))

    @field_validator("gpus")
    @classmethod
    def _countable(cls, value: str) -> str:
        declared(value)
        return value

    @property
    def cache_bytes(self) -> int:
        unit: int = {"M": 1024**2, "G": 1024**3, "T": 1024**4}[self.cache_budget[-1]]
        return int(self.cache_budget[:-1]) * unit

    @property
    def store(self) -> str:
        return self.store_url or str(self.work_dir / "store")

    def offered_secrets(self) -> dict[str, str | None]:
        """By name; None for those that the worker was not given."""
        return {name: os.environ.get(name) for name in self.secrets}

    def unshown(self) -> dict[str, str]:
        """What no log line may show, by the variable that holds it."""
        found = {name: value for name, value in self.offered_secrets().items() if value}
        found |= {name: os.environ[name] for name in KEYS if os.environ.get(name)}
        password = urlsplit(self.redis_url).password
        return {**found, **({"FIRSTBAD_REDIS_URL": unquote(password)} if password else {})}

    def passed_env(self) -> dict[str, str]:
        """The variables of `pass_env` that this process has."""
        return {name: os.environ[name] for name in self.pass_env if os.environ.get(name)}

    def git_env(self) -> dict[str, str]:
        """Like `passed_env`, with what git needs on the node. Never for a sandbox."""
        names = (*GIT_NEEDS, *self.pass_env)
        return {name: os.environ[name] for name in names if os.environ.get(name)}


def declared(gpus: str) -> list[tuple[str, int]] | None:
    """Model and bytes of memory of each card; None when nothing is declared. Errors: ValueError."""
    if not gpus.strip():
        return None
    found: list[tuple[str, int]] = []
    for part in gpus.split(",") if gpus.strip().lower() != "none" else ():
        match = _CARDS.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} does not say how many cards of what model and memory")
        found += [(match["model"], int(match["gib"]) * 1024**3)] * int(match["count"])
    if len(found) > MOST_CARDS:
        raise ValueError(f"no node has {len(found)} cards")
    return found


def complaints(error: ValidationError) -> list[str]:
    """A line for each setting that is wrong: the variable, what it holds, and what it may hold."""
    told = (_complaint(str(wrong["loc"][0]), wrong["msg"], wrong["input"]) for wrong in error.errors())
    return list(dict.fromkeys(told))


def _complaint(name: str, message: str, given: object) -> str:
    value = _PASSWORD.sub("://***@", ",".join(given) if isinstance(given, tuple) else str(given))
    if name.endswith("_url"):
        value = _BEFORE_HOST.sub(r"\1***@", value)
    if name in _NAMES:
        what, known = _NAMES[name]
        return f"FIRSTBAD_{name.upper()}: {value!r} is no {what}; known are {', '.join(known)}"
    message = message.removeprefix("Value error, ")
    examples = " or ".join(map(str, Settings.model_fields[name].examples or ()))
    like = f"; write it like {examples}" if examples else ""
    return f"FIRSTBAD_{name.upper()}: {value!r}: {message[:1].lower()}{message[1:]}{like}"


def misspelt() -> dict[str, str]:
    """Variables that are no setting of either side, each with the one that was probably meant."""
    known = {*Settings.model_fields, *OF_SERVICES, "listen_fd", "parent_fd", "token", "url"}
    found = {
        name: name.removeprefix("FIRSTBAD_").lower() for name in sorted(os.environ) if name.startswith("FIRSTBAD_")
    }
    near = {name: get_close_matches(said, known, 1, 0.8) for name, said in found.items() if said not in known}
    return {name: f"FIRSTBAD_{like[0].upper()}" for name, like in near.items() if like}


def search_path() -> str:
    return os.environ.get("PATH", os.defpath)
