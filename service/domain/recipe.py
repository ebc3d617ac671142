"""How a project is built and run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class SandboxKind(StrEnum):
    DOCKER = "docker"
    PROCESS = "process"


#: What a network may be called, beside the names of those that the nodes' container engines have.
NO_NETWORK, BRIDGE = "none", "bridge"


class ModelCache(StrEnum):
    """How runs see the node's folder of models."""

    NONE = "none"
    READ_ONLY = "read-only"
    SHARED = "shared"


@dataclass(frozen=True)
class Resources:
    """What a run needs. `gpu`: a regular expression, as in "H800|H100", that the GPUs' model is found by; None is any.
    What is None is not limited. `cpuset`: the CPUs that a run may use, as in "0-3,8"; `numa`: the node of memory and
    CPUs that it is bound to. `labels`, `models`: what a node must have to be given it."""

    gpus: int = 0
    gpu: str | None = None
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    pids: int | None = None
    cpuset: str | None = None
    numa: int | None = None
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deps:
    """What a wheel's dependencies are resolved by. `as_of`: `bad`, `commit`, `today` or a date (2025-09-25).

    `constraints`: lines as in a pip constraints file.
    """

    as_of: str = "bad"
    constraints: str = ""


@dataclass(frozen=True)
class Fixup:
    """A change that commits in `range` ("A..B" as git means it) need before they build: a commit's, or a patch."""

    range: str
    cherry_pick: str | None = None
    patch: str | None = None


@dataclass(frozen=True)
class Recipe:
    """Without `build_command` nothing is built: the reproduction runs in the source tree, as with `git bisect run`.

    `env` values may hold `{sha}`, the commit's full id, and each of `wheel_indexes` must: URLs where a wheel that was
    built elsewhere may lie. `package`: the distribution's name. `wheel_paths`: what goes into the wheel (all, when
    empty); `native_paths`: what its compiled files are made from; patterns as in .gitignore. `overlay_command`: the
    project's own way to a wheel from $FIRSTBAD_BASE, one with the same native code. `network`: "none", "bridge", or
    the name of one that the nodes have. `secrets`: variables whose values the nodes have and runs see.
    """

    name: str
    build_command: str | None = None
    build_network: str = BRIDGE
    build_timeout_s: float = 3600.0
    image: str | None = None
    network: str = NO_NETWORK
    env: dict[str, str] = field(default_factory=dict)
    package: str | None = None
    wheel_paths: tuple[str, ...] = ()
    native_paths: tuple[str, ...] = ()
    overlay_command: str | None = None
    wheel_indexes: tuple[str, ...] = ()
    deps: Deps = field(default_factory=Deps)
    fixups: tuple[Fixup, ...] = ()
    resources: Resources = field(default_factory=Resources)
    secrets: tuple[str, ...] = ()
    model_cache: ModelCache = ModelCache.NONE
