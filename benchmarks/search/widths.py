"""Several workers, a deterministic failure, 249 commits in a line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import mean

import numpy as np

from benchmarks.search.histories import line
from benchmarks.search.simulate import deterministic
from benchmarks.search.table import Row

ROUNDS = {2: 5.1, 4: 4.0, 8: 3.0}
MAKESPAN = {2: 5.1, 4: 3.5, 8: 2.6}
VARIATION = 0.5


def rows(quick: bool) -> Iterator[Row]:
    range_ = line(249)
    positions = range(0, len(range_), 8 if quick else 1)
    random = np.random.default_rng(1)
    sigma = math.sqrt(math.log(1 + VARIATION**2))

    def lognormal() -> float:
        return float(random.lognormal(-(sigma**2) / 2, sigma))

    for width, target in ROUNDS.items():
        done = [deterministic(range_, truth, width) for truth in positions]
        rounds = mean(one.elapsed for one in done)
        bound = math.ceil(math.log(len(range_), width + 1))
        yield Row(
            f"{width} workers, equal durations: rounds",
            f"{target}",
            f"{rounds:.2f}",
            f"bound {bound}",
            round(rounds, 1) <= target,
        )
    for width, target in MAKESPAN.items():
        done = [deterministic(range_, truth, width, duration=lognormal) for truth in positions]
        waiting = [deterministic(range_, truth, width, duration=lognormal, rounds=True) for truth in positions]
        makespan = mean(one.elapsed for one in done)
        yield Row(
            f"{width} workers, lognormal durations of cv {VARIATION}: makespan in mean durations",
            f"{target}",
            f"{makespan:.2f}",
            f"each round waits for its last probe: {mean(one.elapsed for one in waiting):.2f}",
            round(makespan, 1) <= target,
        )
