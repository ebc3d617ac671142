"""Questions that need more than one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.domain.bisection import Bisection, Build, Probe
from service.domain.errors import NotFound, NotNow, Removed
from service.domain.evidence import Log
from service.domain.lifecycle import LIVE_BUILDS, LIVE_PROBES
from service.domain.metric import Metric


@dataclass(frozen=True)
class LogStream:
    path: str
    pieces: Iterator[bytes]
    bytes: int


def log_of(probe: Probe, keep_s: float | None = None) -> Log:
    """`keep_s`: the age at which logs are removed. Errors: NotFound; NotNow while it runs; Removed."""
    if probe.state in LIVE_PROBES:
        advice = f"its log can be read when it ends; follow it with firstbad logs -f {probe.id}"
        raise NotNow(f"probe {probe.id} is {probe.state}", value=probe.id, advice=advice)
    ran = probe.outcome or next((fault.outcome for fault in reversed(probe.faults) if fault.outcome), None)
    if ran is None or ran.log is None:
        why = probe.reason or str(probe.state)
        raise NotFound(f"probe {probe.id} left no log ({why})", value=probe.id, advice="only a probe that ran has one")
    _refuse_removed(f"the log of probe {probe.id}", probe, keep_s)
    return ran.log


def _refuse_removed(what: str, thing: Probe | Build, keep_s: float | None) -> None:
    at, ended = thing.log_removed_at, thing.finished_at
    if at is None:
        return
    by_age = keep_s is not None and ended is not None and (at - ended).total_seconds() >= keep_s
    why = "by its age: FIRSTBAD_KEEP_LOGS" if by_age else "to make room: FIRSTBAD_LOG_BUDGET"
    raise Removed(
        f"{what} was removed on {at:%Y-%m-%d at %H:%M} UTC, {why} of the service says what is kept",
        value=thing.id if isinstance(thing, Probe) else thing.key,
        advice=_what_is_left(thing),
    )


def _what_is_left(thing: Probe | Build) -> str:
    """Where the last lines are. Of a build they are nowhere but with the probe whose wheel could not be built."""
    if isinstance(thing, Probe):
        if thing.outcome is None or thing.outcome.log is None:
            return ""
        found = f"jq '.probes[] | select(.id == \"{thing.id}\").outcome.log.last_lines'"
        return f"its last lines are still there: firstbad show {thing.bisection_id} --probes --json | {found}"
    if thing.failure is None:
        return ""
    return f"why it failed is told by the probes that wanted it: firstbad show {thing.bisection_id} --probes"


def known_build(build: Build | None, key: str) -> Build:
    """Errors: NotFound."""
    if build is None:
        raise NotFound(f"there is no build {key!r}", value=key, advice="a probe's `build` names that of its wheel")
    return build


def version(bisection: Bisection, last_event: int) -> str:
    """Of what is kept of a bisection: another one after each change."""
    return f"{last_event:x}-{int(bisection.updated_at.timestamp() * 1_000_000):x}"


def log_of_build(build: Build | None, key: str, keep_s: float | None = None) -> Log:
    """Errors: NotFound; NotNow while it is under way; Removed."""
    build = known_build(build, key)
    if build.state in LIVE_BUILDS:
        raise NotNow(f"the build {key} is {build.state}", value=key, advice="its log can be read when it ends")
    kept = build.log or (build.failure.log if build.failure is not None else None)
    if kept is None:
        raise NotFound(f"the build {key} left no log ({build.state})", value=key, advice="only one that ran has a log")
    _refuse_removed(f"the log of the build {key}", build, keep_s)
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
