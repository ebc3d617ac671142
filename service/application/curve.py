"""A metric over the commits of a bisection: what pictures of it are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain.bisection import Bisection, Commit, Probe
from service.domain.evidence import Verdict
from service.domain.metric import Better, Metric
from service.search.metric.results import Shape
from service.search.metric.samples import Interval


@dataclass(frozen=True)
class Run:
    """One run's number. `bench`: what it was measured on. `marks`: what may have changed it, such as "throttled: power
    cap". `dropped`: why it does not count; empty where it does."""

    probe: str
    value: float
    bench: str
    marks: tuple[str, ...] = ()
    dropped: str = ""


@dataclass(frozen=True)
class Point:
    """A commit that was measured. `position`: in topological order, 0 is the good end. `level`: None as long as its
    runs say too little. `verdict`: "good", "bad" or none yet; `end`: likewise, where it is an end."""

    sha: str
    subject: str
    position: int
    level: Interval | None
    runs: tuple[Run, ...]
    verdict: str = ""
    end: str = ""


@dataclass(frozen=True)
class Side:
    """The runs of an end that count, and its level."""

    values: tuple[float, ...] = ()
    level: Interval | None = None


@dataclass(frozen=True)
class Mark:
    """A step: at one of `shas`, whose positions lie from `low` to `high`. `size`: how much worse it got; a share of the
    good end's level (0.12 is 12 %) when `relative`, else in the metric's unit."""

    shas: tuple[str, ...]
    low: int
    high: int
    size: Interval
    relative: bool = True


@dataclass(frozen=True)
class Curve:
    """`points`: by position. `steps`: the largest first. `candidates`: the position of the bad end. `left`: the
    positions among which the first bad commit may still be; None when one is named, or when there is none to name."""

    name: str
    unit: str
    better: Better
    points: tuple[Point, ...] = ()
    good: Side = Side()
    bad: Side = Side()
    steps: tuple[Mark, ...] = ()
    candidates: int = 0
    left: tuple[int, int] | None = None
    shape: Shape = "step"
    headline: str = ""
    notes: tuple[str, ...] = ()


def curve(
    bisection: Bisection, metric: Metric, probes: Sequence[Probe], order: Sequence[str], commits: Mapping[str, Commit]
) -> Curve:
    """`order`: the range, parents first, the bad end last; empty until the commits are looked up."""
    positions = {**dict.fromkeys(bisection.good_shas, 0), **{sha: at for at, sha in enumerate(order, start=1)}}
    measured = [(probe, run) for probe in probes if (run := _run(probe)) is not None]
    shas = sorted({probe.sha for probe, _ in measured if probe.sha in positions}, key=lambda sha: (positions[sha], sha))
    points = tuple(
        Point(
            sha=sha,
            subject=commits[sha].subject,
            position=positions[sha],
            level=None,
            runs=tuple(run for probe, run in measured if probe.sha == sha),
            verdict=_verdict([probe for probe, _ in measured if probe.sha == sha]),
            end=_end(bisection, sha),
        )
        for sha in shas
    )
    return Curve(
        name=metric.name,
        unit=metric.unit,
        better=metric.better,
        points=points,
        good=_side(points, "good"),
        bad=_side(points, "bad"),
        candidates=len(order),
    )


def _run(probe: Probe) -> Run | None:
    found = probe.outcome.measurements[:1] if probe.outcome is not None else ()
    if probe.outcome is None or not found or found[0].value is None:
        return None
    throttled = probe.outcome.environment.get("throttled")
    return Run(probe.id, found[0].value, probe.node or "", (f"throttled: {throttled}",) if throttled else ())


def _verdict(probes: Sequence[Probe]) -> str:
    verdicts = [probe.verdict for probe in probes if probe.verdict in (Verdict.GOOD, Verdict.BAD)]
    return str(verdicts[-1]) if verdicts else ""


def _end(bisection: Bisection, sha: str) -> str:
    return "bad" if sha == bisection.bad_sha else "good" if sha in bisection.good_shas else ""


def _side(points: Sequence[Point], end: str) -> Side:
    return Side(tuple(run.value for point in points if point.end == end for run in point.runs if not run.dropped))
