"""What workers report, in the service's own words. An entry translates the wire's messages into these."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.bisection import Builder, Origin
from service.domain.evidence import Fault, Log, Outcome


@dataclass(frozen=True)
class ProbeReport:
    """Exactly one of `outcome` and `fault`. `gpu_leased_s`: cards times seconds that it held; `gpu_used_s`: of these,
    while a run was under way."""

    probe: str
    attempt: int
    node: str
    outcome: Outcome | None = None
    fault: Fault | None = None
    gpu_leased_s: float = 0.0
    gpu_used_s: float = 0.0


@dataclass(frozen=True)
class WheelFacts:
    name: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class BuildReport:
    """Exactly one of `wheel`, `failure` (the commit does not build) and `fault`."""

    key: str
    attempt: int
    node: str
    seconds: float
    wheel: WheelFacts | None = None
    failure: Outcome | None = None
    fault: Fault | None = None
    log: Log | None = None
    origin: Origin | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SurveyReport:
    """Exactly one of `builder` and `fault`."""

    bisection: str
    attempt: int
    node: str
    builder: Builder | None = None
    fault: Fault | None = None
