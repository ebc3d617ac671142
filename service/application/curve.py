"""A metric over the commits of a bisection: what pictures of it are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from service.application import telling, wording
from service.application.measure import SURE, Numbers, bench_of, marks_of, value_of
from service.domain.bisection import Bisection, Commit, Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState
from service.domain.metric import Better, Metric
from service.search import Searching
from service.search.graph import Range
from service.search.metric import Interval, Location, Shape


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
    runs say too little. `verdict`: good, bad or None yet. `end`: which it is, None for a commit between them."""

    sha: str
    subject: str
    position: int
    level: Interval | None
    runs: tuple[Run, ...]
    verdict: Verdict | None = None
    end: Literal["good", "bad"] | None = None


@dataclass(frozen=True)
class Side:
    """The runs of an end that count, and its level."""

    values: tuple[float, ...] = ()
    level: Interval | None = None


@dataclass(frozen=True)
class Step:
    """A place where it got worse: at one of `shas`, whose positions lie from `first` to `last`. `size`: how much worse;
    a share of the good end's level (0.12 is 12 %) when `relative`, else in the metric's unit."""

    shas: tuple[str, ...]
    first: int
    last: int
    size: Interval
    relative: bool = True


@dataclass(frozen=True)
class Curve:
    """`points`: by position. `steps`: the largest first. `candidates`: how many there are; the bad end has
    this position. `left`: the positions among which the first bad commit may still be; None when one is named, or when
    there is none to name."""

    name: str
    unit: str
    better: Better
    points: tuple[Point, ...] = ()
    good: Side = Side()
    bad: Side = Side()
    steps: tuple[Step, ...] = ()
    candidates: int = 0
    left: tuple[int, int] | None = None
    shape: Shape = "step"
    headline: str = ""
    notes: tuple[str, ...] = ()


def nothing_yet(bisection: Bisection, metric: Metric) -> Curve:
    """Before the commits are looked up."""
    return Curve(metric.name, metric.unit, metric.better, headline=wording.headline(bisection, ()))


def curve(bisection: Bisection, numbers: Numbers, range_: Range, commits: Mapping[str, Commit]) -> Curve:
    """`commits`: at least those that were measured, and those of the answer."""
    searched = bisection.state not in (BisectionState.CHECKING_ENDS, BisectionState.REFUSED) and bool(numbers.runs)
    location = numbers.location(range_) if searched else None
    places = _positions(numbers.range(range_))
    points = _points(numbers, places, commits, location)
    answer = tuple(commits[sha] for sha in bisection.answer.shas if sha in commits) if bisection.answer else ()
    return Curve(
        name=numbers.metric.name,
        unit=numbers.unit,
        better=numbers.metric.better,
        points=points,
        good=_side(points, "good"),
        bad=_side(points, "bad"),
        steps=_steps(location, places, relative=numbers.ends.relative) if location is not None else (),
        candidates=len(range_),
        left=_left(location, points) if location is not None else None,
        shape=location.shape if location is not None else "step",
        headline=wording.headline(bisection, answer),
        notes=tuple(telling.lines(numbers, range_)) if searched else (),
    )


def _positions(range_: Range) -> dict[str, int]:
    return {**dict.fromkeys(range_.goods, 0), **{sha: at for at, sha in enumerate(range_.shas, start=1)}}


def _points(
    numbers: Numbers, places: Mapping[str, int], commits: Mapping[str, Commit], location: Location | None
) -> tuple[Point, ...]:
    dropped = numbers.dropped
    of_commit: dict[str, list[Probe]] = {}
    for run in numbers.runs:
        of_commit.setdefault(run.sha, []).append(run)
    return tuple(
        Point(
            sha=sha,
            subject=commits[sha].subject,
            position=places[sha],
            level=location.levels.get(sha) if location is not None else None,
            runs=tuple(_run(run, dropped.get(run.id, "")) for run in of_commit[sha]),
            verdict=_verdict(of_commit[sha]),
            end=numbers.end(sha) or None,
        )
        for sha in sorted(of_commit, key=lambda sha: (places.get(sha, -1), sha))
        if sha in places
    )


def _run(probe: Probe, dropped: str) -> Run:
    return Run(probe.id, value_of(probe), bench_of(probe), marks_of(probe), dropped)


def _verdict(runs: Sequence[Probe]) -> Verdict | None:
    """That of the last run that has one."""
    return next((run.verdict for run in reversed(runs) if run.verdict in (Verdict.GOOD, Verdict.BAD)), None)


def _side(points: Sequence[Point], end: str) -> Side:
    mine = [point for point in points if point.end == end]
    values = tuple(run.value for point in mine for run in point.runs if not run.dropped)
    return Side(values, mine[0].level if mine else None)


def _steps(location: Location, places: Mapping[str, int], *, relative: bool) -> tuple[Step, ...]:
    found = []
    for step in location.steps:
        at = [places[sha] for sha in step.shas]
        found.append(Step(step.shas, min(at), max(at), step.size, relative))
    return tuple(found)


def _left(location: Location, points: Sequence[Point]) -> tuple[int, int] | None:
    """Between the last commit that is good beyond doubt and the first that is bad."""
    if not isinstance(location.conclusion, Searching):
        return None
    good = [point.position for point in points if location.bad.get(point.sha, 0.5) <= 1 - SURE]
    bad = [point.position for point in points if location.bad.get(point.sha, 0.5) >= SURE]
    return (max(good, default=0) + 1, min(bad)) if bad and max(good, default=0) < min(bad) else None
