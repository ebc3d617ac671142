"""Generated histories of a number: the level of each commit, the noise of a run, and what a right answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.search.histories import line, merged, range_of
from service.search import Range

#: The good end's level: numbers are like times, so that lower is better.
LEVEL = 100.0
Random = np.random.Generator
Noise = Callable[[Random], float]


@dataclass(frozen=True, eq=False)
class History:
    """`worse`: by commit, how much worse than the good end, in standard deviations of a run, of which one is `sigma` of
    LEVEL. `wide`: by commit, the noise's factor. `truth`: by index, the commits that are a right answer; none where no
    single commit is. `drift`: of the bench, by the number of the run, in standard deviations."""

    range_: Range
    worse: np.ndarray
    truth: frozenset[int]
    noise: Noise
    sigma: float = 0.02
    wide: np.ndarray | None = None
    drift: Callable[[int], float] = lambda turn: 0.0

    def run(self, sha: str, random: Random, turn: int = 0) -> float:
        index = self.range_.find(sha)
        worse = 0.0 if index is None else float(self.worse[index])
        wide = 1.0 if index is None or self.wide is None else float(self.wide[index])
        return LEVEL * (1 + self.sigma * (worse + wide * self.noise(random) + self.drift(turn)))


def normal(random: Random) -> float:
    return float(random.normal())


def heavy(random: Random) -> float:
    """Student's t with 3 degrees of freedom, with the variance of 1."""
    return float(random.standard_t(3)) / np.sqrt(3)


def bimodal(random: Random) -> float:
    """Two modes, as of a scheduler that places a run well or badly: a third of the runs is slow."""
    return (float(random.random() < 1 / 3) - 1 / 3) * 2 + float(random.normal()) / 3


def step(range_: Range, size: float, random: Random, noise: Noise = normal) -> History:
    return steps(range_, [size], random, noise)


def steps(range_: Range, sizes: list[float], random: Random, noise: Noise = normal) -> History:
    """Each at another commit, anywhere; the largest is the answer."""
    places = [int(place) for place in random.choice(len(range_), len(sizes), replace=False)]
    worse = np.zeros(len(range_))
    for place, size in zip(places, sizes, strict=True):
        worse[_behind(range_, place)] += size
    largest = max(sizes)
    return History(range_, worse, frozenset(p for p, s in zip(places, sizes, strict=True) if s == largest), noise)


def ramp(range_: Range, size: float, random: Random, noise: Noise = normal) -> History:
    """Little by little over at least a quarter of the range."""
    n = len(range_)
    length = int(random.integers(n // 4, n + 1))
    begin = int(random.integers(0, n - length + 1))
    worse = size * np.clip((np.arange(n) - begin + 1) / length, 0, 1)
    return History(range_, worse, frozenset(), noise)


def spread(range_: Range, ratio: float, random: Random, noise: Noise = normal) -> History:
    """The noise is `ratio` times as wide from a commit on, the level stays."""
    place = int(random.integers(len(range_)))
    wide = np.ones(len(range_))
    wide[_behind(range_, place)] = ratio
    return History(range_, np.zeros(len(range_)), frozenset([place]), noise, wide=wide)


def graph(n: int, random: Random) -> Range:
    """With 12 % merges."""
    return range_of(merged(n, 0.12, random))


def _behind(range_: Range, place: int) -> np.ndarray:
    if range_.is_line:
        return np.arange(len(range_)) >= place
    return np.array([bool(mask) for mask in _descends(range_, place)])


def _descends(range_: Range, place: int) -> list[bool]:
    found = [False] * len(range_)
    found[place] = True
    for index, parents in enumerate(range_.parent_lists):
        found[index] = found[index] or any(found[parent] for parent in parents)
    return found


__all__ = ["History", "bimodal", "graph", "heavy", "line", "normal", "ramp", "spread", "step", "steps"]
