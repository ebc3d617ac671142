"""Curves to draw: of a range of 249 commits where commit 137 made it 12 % slower."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Literal

from service.application.curve import Curve, Point, Run, Side, Step
from service.domain.evidence import Verdict
from service.domain.metric import Better
from service.search.metric.samples import Interval
from tests.fakes.flow import sha

STEP = 137
CANDIDATES = 249
GOOD, BAD, NOISE = 512.0, 450.0, 9.0
SOME = (0, 62, 124, 131, 134, 136, 137, 140, 155, 186, 249)


def interval(values: Sequence[float]) -> Interval:
    around = 2 * stdev(values) / len(values) ** 0.5
    return Interval(mean(values), mean(values) - around, mean(values) + around)


def point(at: int, runs: int, seed: int = 7) -> Point:
    chance = random.Random(seed * 1000 + at)
    level = GOOD if at < STEP else BAD
    made = tuple(Run(f"b1.{at}{trial}", round(chance.gauss(level, NOISE), 2), "node-1") for trial in range(runs))
    ends: dict[int, Literal["good", "bad"]] = {0: "good", CANDIDATES: "bad"}
    verdict = Verdict.GOOD if at < STEP else Verdict.BAD
    return Point(sha(at), f"Change number {at}", at, interval([run.value for run in made]), made, verdict, ends.get(at))


def stepped(positions: Sequence[int] = SOME, runs: int = 6) -> Curve:
    """With one run that was dropped, one that was throttled, and one commit without a verdict."""
    points = {at: point(at, 20 if at in (0, CANDIDATES) else runs) for at in positions}
    first, *others = points[62].runs
    odd = (replace(first, dropped="the node had drifted"), replace(others[0], marks=("throttled: power cap",)))
    points[62] = replace(points[62], runs=(*odd, *others[1:]))
    points[136] = replace(points[136], verdict=None, runs=points[136].runs[:2])
    ends = {end: [run.value for run in points[at].runs] for end, at in (("good", 0), ("bad", CANDIDATES))}
    return Curve(
        name="Output token throughput",
        unit="tok/s",
        better=Better.HIGHER,
        points=tuple(points.values()),
        good=Side(tuple(ends["good"]), points[0].level),
        bad=Side(tuple(ends["bad"]), points[CANDIDATES].level),
        steps=(Step((sha(STEP),), STEP, STEP, Interval(0.121, 0.094, 0.148)),),
        candidates=CANDIDATES,
        headline=f"{sha(STEP)[:10]} is the first bad commit: Change number {STEP}",
        notes=("1 run was dropped: the node had drifted",),
    )
