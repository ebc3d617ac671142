"""Samples until a step is named, beside bisection with a threshold and git_bayesect, on the same seeds.

The others are given the best threshold, midway between the true levels, for nothing; ours finds the ends first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.metric import histories
from benchmarks.metric.simulate import QUESTION, search
from benchmarks.search.flaky import bisector
from benchmarks.search.table import Row

N = 256
SIZES = (3.0, 1.0, 0.5)
#: Of each end: half a standard deviation is not seen with the usual 30.
RUNS = {3.0: 30, 1.0: 60, 0.5: 200}
#: Lower confidences, to see with how many runs 95 % of the answers are right.
CONFIDENCES = (0.95, 0.9)
MOST = 3000


@dataclass(frozen=True)
class Figures:
    samples: float
    commits: float
    right: float

    def __str__(self) -> str:
        return f"{self.samples:.1f} samples of {self.commits:.1f} commits, {self.right:.1%} right"


def rows(quick: bool, bayesect: Path | None, seeds: int) -> Iterator[Row]:
    for size in SIZES:
        some, repeated = (2, 300) if quick else (seeds, 4000)
        told, shown = [], []
        for confidence in CONFIDENCES[:1] if quick else CONFIDENCES:
            ends, found, given_up = _ours(size, some, confidence)
            told.append((ends, found))
            shown.append(
                f"stated at {confidence:g}: {found.samples + ends:.1f} samples, {ends:.1f} of them of the ends, "
                f"{found.commits:.1f} other commits, {found.right:.1%} right, {given_up:.1%} end without a name"
            )
        ten, enough = _bisect(size, 10, repeated), _enough(size, repeated)
        others = {
            "git bisect, 10 samples a commit": ten,
            f"git bisect, {enough[0]} samples a commit": enough[1],
        }
        made = bisector(bayesect)
        if made is not None:
            others["git_bayesect"] = _bayesect(made, size, some)
        goal = min(other.samples for other in others.values() if other.right >= 0.9) / 2
        yield Row(
            f"N={N}, a step of {size:g} standard deviations, {some} seeds",
            f"at most {goal:.1f} samples after the ends" if size == 1.0 else "",
            "; ".join(shown),
            "; ".join(f"{name}: {figures}" for name, figures in others.items()),
            told[0][1].samples <= goal if size == 1.0 else None,
        )


def _ours(size: float, seeds: int, confidence: float) -> tuple[float, Figures, float]:
    """The runs of the ends, those after them, and the share of searches that ended without a name."""
    range_, done = histories.line(N), []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        history = histories.step(range_, size, random)
        # The ends are compared as they always are: only the answer's confidence differs.
        said = search(history, random, replace(QUESTION, runs=RUNS[size]), confidence=confidence)
        done.append((said, said.found in history.truth))
    ends, runs, commits = (mean(getattr(said, name) for said, _ in done) for name in ("ends", "runs", "commits"))
    named = [right for said, right in done if said.found is not None]
    return ends, Figures(runs, commits, mean(named) if named else 0.0), 1 - len(named) / len(done)


def _bisect(size: float, samples: int, seeds: int) -> Figures:
    """Each commit by the mean of so many samples against the threshold."""
    right, commits = [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        truth, low, high, tried = int(random.integers(N)), 0, N - 1, 0
        while low < high:
            middle = (low + high - 1) // 2
            level = size * (middle >= truth) + random.normal() / np.sqrt(samples)
            low, high = (low, middle) if level > size / 2 else (middle + 1, high)
            tried += 1
        right.append(low == truth)
        commits.append(tried)
    return Figures(samples * mean(commits), mean(commits), mean(right))


def _enough(size: float, seeds: int) -> tuple[int, Figures]:
    """The fewest samples a commit with which 95 % of the answers are right."""
    low, high = 1, 1
    while _bisect(size, high, seeds).right < 0.95:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _bisect(size, middle, seeds).right >= 0.95 else (middle + 1, high)
    return low, _bisect(size, low, seeds)


def _bayesect(made: Callable[[list[float]], Any], size: float, seeds: int) -> Figures:
    """git_bayesect's own search to a posterior of 0.95: a sample above the threshold is a failure. Its index 0 is the
    newest commit."""
    done = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        truth, bisection, tried = int(random.integers(N)), made([1.0] * N), []
        while bisection.distribution.max() < 0.95 and len(tried) < MOST:
            index = bisection.select()
            tried.append(index)
            level = size * (N - 1 - index >= truth) + random.normal()
            bisection.record(index, bool(level > size / 2))
        done.append((len(tried), len(set(tried)), float(N - 1 - int(bisection.distribution.argmax()) == truth)))
    return Figures(*(mean(part) for part in zip(*done, strict=True)))
