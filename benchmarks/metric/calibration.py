"""Whether answers stated at 95 % are right in at least 95 of 100, shape by shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import mean

import numpy as np

from benchmarks.metric import histories
from benchmarks.metric.histories import History, Noise, Random
from benchmarks.metric.simulate import QUESTION, Finished, search
from benchmarks.search.table import Row
from service.search import Range

#: The budget of each end: steps of half a deviation are not seen with the usual one.
RUNS = 60
#: An end is measured again after so many commits where the bench drifts.
RECHECK = 8

Make = Callable[[Random], History]


def _line(random: Random) -> Range:
    return histories.line(_length(random))


def _length(random: Random) -> int:
    return int(np.exp(random.uniform(np.log(20), np.log(500))))


def _size(random: Random) -> float:
    """From half a standard deviation of a run to five."""
    return float(np.exp(random.uniform(np.log(0.5), np.log(5))))


def _step(noise: Noise) -> Make:
    return lambda random: histories.step(_line(random), _size(random), random, noise)


def _several(random: Random) -> History:
    """Two to four, one of them the largest, by a quarter at least."""
    sizes = [_size(random) for _ in range(int(random.integers(2, 5)))]
    sizes[0] = max(sizes[0], 1.25 * max(sizes[1:]))
    return histories.steps(_line(random), sizes, random)


def _any_sizes(random: Random) -> History:
    return histories.steps(_line(random), [_size(random), _size(random)], random)


def _mended(random: Random) -> History:
    """It got better as well, somewhere."""
    size = _size(random)
    return histories.steps(_line(random), [size, -size * float(random.uniform(0.2, 0.6))], random)


def _drifting(random: Random) -> History:
    """The bench jumps once, by one to four deviations, at a run that the search may reach."""
    when, jump = int(random.integers(20, 60)), float(random.uniform(1, 4)) * float(random.choice([-1, 1]))
    made = histories.step(_line(random), _size(random), random)
    return replace(made, drift=lambda turn: jump if turn >= when else 0.0)


SHAPES: dict[str, tuple[Make, int]] = {
    "a step": (_step(histories.normal), 0),
    "a step, histories with 12 % merges": (
        lambda random: histories.step(histories.graph(_length(random), random), _size(random), random),
        0,
    ),
    "a step, heavy tails (Student's t, 3 degrees of freedom)": (_step(histories.heavy), 0),
    "a step, bimodal noise": (_step(histories.bimodal), 0),
    "two to four steps": (_several, 0),
    "two steps of any sizes": (_any_sizes, 0),
    "a step, and a mend somewhere": (_mended, 0),
    "a ramp": (lambda random: histories.ramp(_line(random), 2 * _size(random), random), 0),
    "a change in spread, of two to five times": (
        lambda random: histories.spread(_line(random), float(random.uniform(2, 5)), random),
        0,
    ),
    "a step, the bench jumps, ends measured again": (_drifting, RECHECK),
}


def rows(quick: bool, seeds: int) -> Iterator[Row]:
    seeds = 2 if quick else seeds
    for name, (make, recheck) in SHAPES.items():
        done = [_one(make, seed, recheck) for seed in range(seeds)]
        yield _row(name, done)


def _one(make: Make, seed: int, recheck: int) -> tuple[History, Finished]:
    random = np.random.default_rng(seed)
    history = make(random)
    return history, search(history, random, replace(QUESTION, runs=RUNS), recheck)


def _row(name: str, done: list[tuple[History, Finished]]) -> Row:
    searched = [(history, said) for history, said in done if not said.refused]
    named = [said.found in history.truth for history, said in searched if said.found is not None]
    unsure = len(searched) - len(named)
    held = [bool(history.truth & said.suspects) for history, said in searched if said.found is None]
    right = mean(named) if named else 1.0
    wrong = (len(named) - sum(named)) / max(len(searched), 1)
    none = not any(history.truth for history, _ in done)
    share = f"{right:.1%} right" if not none else f"{wrong:.1%} wrongly named"
    return Row(
        f"{name}: {len(done)} histories",
        "at most 5 % named" if none else "95 % right",
        f"{share}; {len(named)} named, {unsure} with suspects"
        + ("" if none or not held else f" ({mean(held):.0%} of them with the right one)")
        + f", {len(done) - len(searched)} refused at the ends; {_mean(searched, 'ends'):.1f} runs of the ends, "
        f"{_mean(searched, 'runs'):.1f} after them, {_mean(searched, 'commits'):.1f} commits",
        "",
        wrong <= 0.05 if none else right >= 0.95,
    )


def _mean(searched: list[tuple[History, Finished]], figure: str) -> float:
    return mean(getattr(said, figure) for _, said in searched) if searched else 0.0
