"""Everything an operator can set, each by an environment variable FIRSTBAD_<NAME>. Read once, by the wiring."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ByteSize, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    home: Path = Field(default=Path("~/.local/share/firstbad"), description="folder for all that the service keeps")
    database_url: str | None = Field(default=None, description="SQLAlchemy URL; without it SQLite in the home")
    redis_url: str | None = Field(default=None, description="redis:// or rediss:// URL; `firstbad up` starts its own")
    store_url: str | None = Field(default=None, description="fsspec URL of the artifact store; without it in the home")
    recipes_dir: Path | None = Field(default=None, description="folder of recipes besides the ones that come along")
    port: int = Field(default=8377, ge=0, le=65535, description="of the API, on 127.0.0.1")
    slots: int = Field(default=2, ge=1, le=256, description="builds and probes at once on this machine")
    sandboxes: frozenset[str] = Field(default=frozenset({"process", "docker"}), description="that requests may use")
    default_sandbox: str = Field(default="process", description="of a request that names none")
    allow_file_repos: bool = Field(default=True, description="whether a repository may be a folder of this machine")
    store_budget: ByteSize | None = Field(default=None, description="of wheels, like 200GB; without it all are kept")
    ahead: int = Field(default=4, ge=0, description="builds of a bisection made before a probe wants them; 0 is none")
    sweep_s: float = Field(default=5.0, gt=0, description="seconds between two sweeps")
    log_level: str = Field(default="INFO", description="of the service's own log")

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
    def mirrors_dir(self) -> Path:
        return self.home_dir / "mirrors"


class Inherited(BaseSettings):
    """File descriptors that `firstbad up` hands to its children."""

    model_config = SettingsConfigDict(env_prefix="FIRSTBAD_", frozen=True, extra="ignore")

    parent_fd: int
    listen_fd: int


def environment() -> dict[str, str]:
    """The environment that child processes start from."""
    return dict(os.environ)
