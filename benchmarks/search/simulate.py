"""Searches simulated with the product's own functions: workers, durations, verdicts that may be wrong, costs."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from service.search import Evidence, Found, Noise, Range, conclusion, next_probes, redundant
from service.search.belief import believe


@dataclass(frozen=True)
class Finished:
    """`elapsed` is in units of the mean probe duration; `probes` counts those that were started."""

    found: str | None
    probes: int
    elapsed: float


@dataclass(frozen=True)
class Step:
    """A flaky search after so many runs: what they cost, its best answer, and the confidence it would state."""

    runs: int
    builds: int
    spent: float
    best: str
    stated: float


def convicted(range_: Range, truth: int) -> set[str]:
    """The commits that are bad when the one at `truth` is the first bad one."""
    if range_.is_line:
        return set(range_.shas[truth:])
    return {sha for index, sha in enumerate(range_.shas) if range_.ancestors(index)[truth]}


def deterministic(
    range_: Range,
    truth: int,
    width: int = 1,
    prior: dict[str, float] | None = None,
    duration: Callable[[], float] = lambda: 1.0,
    rounds: bool = False,
) -> Finished:
    """One search with `width` workers. With `rounds`, nothing starts before every probe of the round has answered."""
    bad, evidence, now, started = convicted(range_, truth), Evidence(), 0.0, 0
    flying: list[tuple[float, str]] = []
    while True:
        gone = set(redundant(range_, evidence, [sha for _, sha in flying]))
        flying = [item for item in flying if item[1] not in gone]
        heapq.heapify(flying)
        if not (rounds and flying):
            for sha in next_probes(range_, evidence, prior, [sha for _, sha in flying], width):
                heapq.heappush(flying, (now + duration(), sha))
                started += 1
        if not flying:
            break
        now = flying[0][0]
        while flying and flying[0][0] == now:
            _, sha = heapq.heappop(flying)
            evidence = evidence.plus(sha, "bad" if sha in bad else "good")
    said = conclusion(range_, evidence, prior)
    return Finished(said.sha if isinstance(said, Found) else None, started, now)


def flaky(
    range_: Range,
    truth: int,
    rates: tuple[float, float],
    noise: Noise,
    confidence: float,
    random: np.random.Generator,
    build: float = 0.0,
) -> list[Step]:
    """One search, one run at a time, of a failure with these false bad and false good rates.

    `build` is the cost of a commit's first run on top of the 1 of every run; the ends are built already.
    """
    bad, evidence, spent, steps = convicted(range_, truth), Evidence(), 0.0, []
    built = {*range_.goods, range_.shas[-1]}
    while True:
        cost = {sha: 1.0 if sha in built else 1.0 + build for sha in range_.shas} if build else None
        belief = believe(range_, evidence, noise=noise)
        best = int(np.argmax(belief.weights))
        builds = len(built) - len(range_.goods) - 1
        steps.append(Step(len(evidence), builds, spent, range_.shas[best], noise.stated(belief.weights[best])))
        probes = next_probes(range_, evidence, cost=cost, noise=noise, confidence=confidence)
        if not probes:
            return steps
        sha = probes[0]
        fails = random.random() >= rates[1] if sha in bad else random.random() < rates[0]
        spent += 1.0 if sha in built else 1.0 + build
        built.add(sha)
        evidence = evidence.plus(sha, "bad" if fails else "good")
