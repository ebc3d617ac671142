"""Questions that need more than one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.domain.bisection import Bisection, Build, Probe
from service.domain.errors import NotFound, NotNow
from service.domain.evidence import Log
from service.domain.lifecycle import LIVE_BUILDS, LIVE_PROBES
from service.domain.metric import Metric


@dataclass(frozen=True)
class LogStream:
    path: str
    pieces: Iterator[bytes]
    bytes: int


def log_of(probe: Probe) -> Log:
    if probe.state in LIVE_PROBES:
        advice = f"its log can be read when it ends; follow it with firstbad logs -f {probe.id}"
        raise NotNow(f"probe {probe.id} is {probe.state}", value=probe.id, advice=advice)
    ran = probe.outcome or next((fault.outcome for fault in reversed(probe.faults) if fault.outcome), None)
    if ran is None or ran.log is None:
        why = probe.reason or str(probe.state)
        raise NotFound(f"probe {probe.id} left no log ({why})", value=probe.id, advice="only a probe that ran has one")
    return ran.log


def log_of_build(build: Build | None, key: str) -> Log:
    """Errors: NotFound; NotNow while it is under way."""
    if build is None:
        raise NotFound(f"there is no build {key!r}", value=key, advice="a probe's `build` names that of its wheel")
    if build.state in LIVE_BUILDS:
        raise NotNow(f"the build {key} is {build.state}", value=key, advice="its log can be read when it ends")
    kept = build.log or (build.failure.log if build.failure is not None else None)
    if kept is None:
        raise NotFound(f"the build {key} left no log ({build.state})", value=key, advice="only one that ran has a log")
    return kept


def metric_of(bisection: Bisection) -> Metric:
    """Errors: NotFound."""
    if bisection.request.metric is None:
        raise NotFound(
            f"bisection {bisection.id} looks for a failure and measures nothing",
            value=bisection.id,
            advice="a request with metric: compares a number",
        )
    return bisection.request.metric
