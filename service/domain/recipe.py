"""How a project is built and run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class SandboxKind(StrEnum):
    DOCKER = "docker"
    PROCESS = "process"


class Network(StrEnum):
    NONE = "none"
    BRIDGE = "bridge"


@dataclass(frozen=True)
class Recipe:
    """Without `build_command` nothing is built: the reproduction runs in the source tree, as with `git bisect run`.

    `env` values may hold `{sha}`, the commit's full id.
    """

    name: str
    build_command: str | None = None
    build_network: Network = Network.BRIDGE
    build_timeout_s: float = 3600.0
    image: str | None = None
    network: Network = Network.NONE
    env: dict[str, str] = field(default_factory=dict)
