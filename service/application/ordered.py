"""What workers are asked to do, in the service's own words. An adapter translates these into the wire's messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from service.domain.bisection import Reproduction, ResolvedFixup
from service.domain.metric import Metric
from service.domain.recipe import ModelCache, Resources, SandboxKind


@dataclass(frozen=True)
class SandboxOrder:
    kind: SandboxKind
    image: str | None
    network: str
    python: str | None = None


@dataclass(frozen=True)
class SourceOrder:
    """One commit, with the fix-ups that apply to it."""

    repo: str
    mirror: str
    sha: str
    fixups: tuple[ResolvedFixup, ...] = ()


@dataclass(frozen=True)
class BaseOrder:
    """A wheel with the same native code, and what it was made from."""

    source: SourceOrder
    wheel: str
    wheel_sha256: str


@dataclass(frozen=True)
class DependenciesOrder:
    """`as_of`: RFC 3339, None is now. `network`: of the sandbox in which they are installed."""

    as_of: str | None
    constraints: str
    network: str


@dataclass(frozen=True)
class SurveyOrder:
    bisection: str
    attempt: int
    sandbox: SandboxOrder


@dataclass(frozen=True)
class BuildOrder:
    key: str
    attempt: int
    source: SourceOrder
    command: str
    env: dict[str, str]
    sandbox: SandboxOrder
    timeout_s: float
    package: str | None = None
    indexes: tuple[str, ...] = ()
    base: BaseOrder | None = None
    overlay_command: str | None = None
    ahead: bool = False
    failure: str | None = None
    project: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProbeOrder:
    """`gpu_class` with `resources.gpus`. `target`: the one node to send it to. `project`: names of the packages under
    test. `metrics`: the one that decides first. `cards`: the GPUs that it shall have; any, when empty."""

    bisection: str
    probe: str
    attempt: int
    source: SourceOrder
    wheel: str | None
    wheel_sha256: str | None
    dependencies: DependenciesOrder | None
    reproduction: Reproduction
    env: dict[str, str]
    sandbox: SandboxOrder
    timeout_s: float
    wheel_key: str | None = None
    control: Reproduction | None = None
    metrics: tuple[Metric, ...] = ()
    warmup: int = 0
    cards: tuple[int, ...] = ()
    resources: Resources = field(default_factory=Resources)
    gpu_class: str | None = None
    secrets: tuple[str, ...] = ()
    model_cache: ModelCache = ModelCache.NONE
    project: tuple[str, ...] = ()
    target: str | None = None
