"""Time of one choice, with what it is chosen from worked out anew."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.metric import histories
from benchmarks.metric.simulate import QUESTION
from benchmarks.search.table import Row
from service.search import Range
from service.search.metric import Sample, next_commit


def rows(quick: bool) -> Iterator[Row]:
    random = np.random.default_rng(0)
    cases: list[tuple[str, Range, float | None]] = [
        ("256 in a line", histories.line(256), None),
        ("1,000 in a line", histories.line(1000), 0.02),
        ("1,000, 12 % merges", histories.graph(1000, random), 0.02),
        ("10,000 in a line", histories.line(10_000), None),
        ("10,000, 12 % merges", histories.graph(10_000, random), None),
        ("100,000 in a line", histories.line(100_000), None),
    ]
    for name, range_, target in cases[: 3 if quick else None]:
        taken = [_one(range_, seed) for seed in range(3 if quick else 20)]
        middle = float(np.median(taken))
        yield Row(
            f"{name}, 60 commits measured, one choice",
            "" if target is None else f"{1000 * target:.0f} ms",
            f"{1000 * middle:.1f} ms, at most {1000 * max(taken):.1f} ms",
            "",
            None if target is None else middle <= target,
        )


def _one(range_: Range, seed: int) -> float:
    """A step of one standard deviation, 60 commits around it, run once or twice each."""
    random = np.random.default_rng(seed)
    history, n = histories.step(range_, 1.0, random), len(range_)
    place = next(iter(history.truth))
    near = {int(np.clip(place + off, 0, n - 2)) for off in np.rint(np.geomspace(1, n, 30)).tolist()}
    near |= {int(np.clip(place - off, 0, n - 2)) for off in np.rint(np.geomspace(1, n, 30)).tolist()}
    shas = [*[range_.goods[0], range_.shas[-1]] * 12, *(range_.shas[index] for index in near)]
    samples = [Sample(sha, history.run(sha, random)) for sha in shas]
    begun = time.perf_counter()
    next_commit(range_, samples, QUESTION)
    return time.perf_counter() - begun
