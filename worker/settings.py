"""The worker's settings, from the environment (FIRSTBAD_…), frozen. The only place that reads the environment."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

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


class Settings(BaseSettings):
    """`work_dir`: jobs, caches and results not yet sent. `store_url`: an fsspec URL or a path.

    `slots`: tasks at a time. `roles`: what it does. `visible`: folders of the node that process sandboxes may read.
    `hidden`: folders that no process sandbox sees, besides `work_dir` and the store. `sandbox_uid`: who runs inside
    when the worker is root.
    """

    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    redis_url: str = "redis://127.0.0.1:6379/0"
    work_dir: Path = Path("/var/tmp/firstbad-worker")
    store_url: str = ""
    node: str = Field(default_factory=socket.gethostname, min_length=1, max_length=200)
    slots: int = Field(default=1, ge=1, le=1024)
    roles: Annotated[tuple[Role, ...], NoDecode, Field(min_length=1)] = ("build", "run")
    sandboxes: Annotated[tuple[SandboxKind, ...], NoDecode] = ("docker", "process")
    allow_file_repos: bool = False
    pass_env: Annotated[tuple[str, ...], NoDecode] = PASSED
    docker_host: str | None = None
    visible: Annotated[tuple[Path, ...], NoDecode] = ()
    hidden: Annotated[tuple[Path, ...], NoDecode] = ()
    sandbox_uid: int = Field(default=65534, ge=1)
    parent_fd: int | None = None
    #: How many environments of dependencies are kept.
    environments: int = Field(default=8, ge=1)
    #: Longest time that preparing one may take.
    environment_timeout_s: float = Field(default=3600.0, gt=0)
    #: The most that the compiler cache of one repository's builds may hold.
    compiler_cache: str = Field(default="5G", pattern=r"^[1-9][0-9]*[MGT]$")
    #: Longest time that git may take to bring a commit to the node.
    fetch_timeout_s: float = 900.0

    @field_validator("roles", "sandboxes", "pass_env", "visible", "hidden", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("work_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @property
    def store(self) -> str:
        return self.store_url or str(self.work_dir / "store")

    def passed_env(self) -> dict[str, str]:
        """The variables of `pass_env` that this process has."""
        return {name: os.environ[name] for name in self.pass_env if os.environ.get(name)}

    def git_env(self) -> dict[str, str]:
        """Like `passed_env`, with what git needs on the node. Never for a sandbox."""
        names = (*GIT_NEEDS, *self.pass_env)
        return {name: os.environ[name] for name in names if os.environ.get(name)}


def search_path() -> str:
    return os.environ.get("PATH", os.defpath)
