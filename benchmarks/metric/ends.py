"""How often ends that are the same are told apart, looked at after every pair of runs, and how many runs it takes where
they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import mean

import numpy as np

from benchmarks.search.table import Row
from service.search.metric import Question, Sample, compare_ends

Draw = Callable[[np.random.Generator, int], np.ndarray]
NOISES: dict[str, Draw] = {
    "normal": lambda random, n: random.normal(0, 1, n),
    "heavy tails (Student's t, 3 degrees of freedom)": lambda random, n: random.standard_t(3, n),
    "bimodal": lambda random, n: 3.0 * (random.random(n) < 1 / 3) + random.normal(0, 0.3, n),
    "a run in ten far off": lambda random, n: 5.0 * (random.random(n) < 0.1) + random.normal(0, 0.3, n),
    "coarse: one of two numbers": lambda random, n: 1.0 * random.integers(0, 2, n),
    "coarse: one of three numbers": lambda random, n: 1.0 * random.integers(0, 3, n),
    "skewed (log-normal)": lambda random, n: np.exp(random.normal(0, 1, n)),
}
QUESTION = Question("lower")


def rows(quick: bool, seeds: int) -> Iterator[Row]:
    seeds = 10 if quick else seeds
    for name, draw in NOISES.items():
        told = [_until(draw, 0.0, seed)[0] for seed in range(seeds)]
        wrong = sum(said in ("differ", "reversed") for said in told) / seeds
        yield Row(
            f"ends the same, {name}: {seeds} times up to {QUESTION.runs} runs of each",
            "told apart in at most 5 %",
            f"{wrong:.1%}",
            "",
            wrong <= 0.05,
        )
    for size in (5.0, 3.0, 2.0, 1.0, 0.75, 0.5):
        found = [_until(NOISES["normal"], size, seed) for seed in range(max(seeds // 5, 10))]
        runs = [2 * count for said, count in found if said == "differ"]
        yield Row(
            f"a step of {size:g} standard deviations",
            "",
            f"seen in {len(runs) / len(found):.1%}, with {mean(runs) if runs else 0:.1f} runs of both together",
        )


def _until(draw: Draw, shift: float, seed: int) -> tuple[str, int]:
    random = np.random.default_rng(seed)
    good, bad = ([Sample("", 100 + float(v)) for v in draw(random, QUESTION.runs) + off] for off in (0.0, shift))
    for runs in range(4, QUESTION.runs + 1):
        said = compare_ends(good[:runs], bad[:runs], QUESTION).verdict
        if said != "unsure":
            break
    return said, runs
