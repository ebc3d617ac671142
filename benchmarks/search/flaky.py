"""Flaky failures: runs until the answer may be given, beside the methods that others use, on the same seeds."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.search.histories import line
from benchmarks.search.simulate import Step, flaky
from benchmarks.search.table import Row
from service.search import UNKNOWN, Noise

Rates = tuple[float, float]
NAMES = {
    (0.1, 0.3): "a good commit fails in 10 % of runs, a bad one passes in 30 %",
    (0.1, 0.0): "a good commit fails in 10 % of runs, a bad one always",
    (0.0, 0.3): "a good commit never fails, a bad one passes in 30 %",
    (0.0, 0.0): "deterministic, treated as possibly flaky",
}
TARGETS = {(0.1, 0.3): 44, (0.1, 0.0): 15, (0.0, 0.3): 27, (0.0, 0.0): 10}
TARGET_BUILDS, TARGET_KNOWN, BUILD = 20, 29, 10.0


@dataclass(frozen=True)
class Figures:
    """Means over seeds; `right` is the share of right ones among answers given, `odds` that of searches without one."""

    runs: float
    builds: float
    spent: float
    right: float
    odds: float

    def __str__(self) -> str:
        undecided = f", {self.odds:.1%} end with odds" if self.odds else ""
        return f"{self.runs:.1f} runs, {self.builds:.1f} builds, {self.right:.1%} right{undecided}"


#: For each search the first bad commit and the steps, one more than there were runs.
Done = list[tuple[str, list[Step]]]


def searches(n: int, rates: Rates, noise: Noise, confidence: float, seeds: Iterable[int], build: float = 0.0) -> Done:
    """One search for each seed, each with another first bad commit."""
    range_, done = line(n), []
    for seed in seeds:
        random = np.random.default_rng(seed)
        truth = int(random.integers(n))
        done.append((range_.shas[truth], flaky(range_, truth, rates, noise, confidence, random, build)))
    return done


def at(done: Done, stated: float) -> Figures:
    """Where each search stops as soon as it could state this confidence."""
    ends = [(truth, next((step for step in steps if step.stated >= stated), None)) for truth, steps in done]
    last = [step or steps[-1] for (_, step), (_, steps) in zip(ends, done, strict=True)]
    answers = [step.best == truth for truth, step in ends if step is not None]
    return Figures(
        mean(step.runs for step in last),
        mean(step.builds for step in last),
        mean(step.spent for step in last),
        mean(answers) if answers else 0.0,
        1 - len(answers) / len(ends),
    )


def until_right(done: Done, share: float) -> float:
    """The fewest runs, over confidences to stop at, with which this share of all searches gives the right answer."""
    levels = sorted({round(step.stated, 2) for _, steps in done for step in steps})
    found = [at(done, level) for level in levels]
    return min((one.runs for one in found if one.right * (1 - one.odds) >= share), default=float("nan"))


def rows(quick: bool, bayesect: Path | None) -> Iterator[Row]:
    seeds = 40 if quick else 400
    done = searches(249, (0.1, 0.3), Noise.known(0.1, 0.3), 0.95, range(seeds))
    known = at(done, 0.95)
    yield Row(
        f"N=249, {NAMES[0.1, 0.3]}, rates known",
        f"{TARGET_KNOWN} runs",
        f"stated 0.95: {known}; until 95 % are right: {until_right(done, 0.95):.1f} runs",
        _known_references(seeds),
        round(known.runs) <= TARGET_KNOWN,
    )
    for n in (249, 1000, 10_000):
        for rates, target in TARGETS.items():
            yield from _unknown(n, rates, target if n == 249 else None, seeds if n < 10_000 else seeds // 4, bayesect)
    yield from _costs(seeds, bayesect)
    yield _kept(seeds)
    yield _kept_at_each(seeds)


def _unknown(n: int, rates: Rates, target: int | None, seeds: int, bayesect: Path | None) -> Iterator[Row]:
    done = searches(n, rates, UNKNOWN, 0.99, range(seeds))
    stated = at(done, 0.95)
    reference = _bayesect(bayesect, n, rates, seeds) if n < 10_000 else ""
    reached = None if target is None else stated.runs <= target
    if target and rates == (0.1, 0.3):
        reached = reached and stated.builds <= TARGET_BUILDS
    yield Row(
        f"N={n:,}, {NAMES[rates]}, rates unknown",
        "" if target is None else f"{target} runs" + (f", {TARGET_BUILDS} builds" if rates == (0.1, 0.3) else ""),
        f"stated 0.95: {stated}; stated 0.99: {at(done, 0.99)}; "
        f"until 95 % are right: {until_right(done, 0.95):.1f} runs",
        reference,
        reached,
    )


def _kept(seeds: int) -> Row:
    """Rates that no fit was made for: drawn evenly, up to 20 % false bad and 50 % false good, ranges of 20 to 400."""
    random, done = np.random.default_rng(99), []
    for seed in range(2 * seeds):
        rates = (random.uniform(0, 0.2), random.uniform(0, 0.5))
        done += searches(int(random.integers(20, 400)), rates, UNKNOWN, 0.99, [seed])
    low, high = at(done, 0.95), at(done, 0.99)
    return Row(
        f"{len(done)} searches, rates drawn evenly up to 20 % and 50 %: answers that are right",
        "95 % of those stated at 0.95, 99 % at 0.99",
        f"stated 0.95: {low}; stated 0.99: {high}",
        "",
        low.right >= 0.95 and high.right >= 0.99,
    )


def _kept_at_each(seeds: int) -> Row:
    """Every pair of rates for itself, the hardest ones too: no average hides one at which answers are wrong."""
    found = {}
    for rates in ((a, b) for a in (0.0, 0.05, 0.1, 0.2) for b in (0.0, 0.1, 0.3, 0.5) if (a, b) != (0.2, 0.5)):
        found[rates] = at(searches(100, rates, UNKNOWN, 0.95, range(seeds)), 0.95)
    hard = sorted(found, key=lambda rates: found[rates].right)
    shown = "; ".join(f"{a:.0%} and {b:.0%}: {found[a, b]}" for a, b in hard[:3])
    return Row(
        f"N=100, {len(found)} pairs of rates of false bad and false good up to 20 % and 50 %: right at each",
        "95 % of answers stated at 0.95",
        f"lowest three: {shown}",
        "",
        found[hard[0]].right >= 0.95,
    )


def _costs(seeds: int, bayesect: Path | None) -> Iterator[Row]:
    """What a run costs is 1, what a build costs is 10; rates unknown."""
    mine = at(searches(249, (0.1, 0.3), UNKNOWN, 0.95, range(seeds), BUILD), 0.95)
    other = at(searches(249, (0.1, 0.3), UNKNOWN, 0.95, range(seeds)), 0.95)
    most, needed = _cheapest_repeats((0.1, 0.3), seeds)
    fixed = _repeated((0.1, 0.3), most, needed, seeds)
    yield Row(
        f"N=249, {NAMES[0.1, 0.3]}, rates unknown, a build costs {BUILD:g} runs: total cost",
        "lower than the others",
        f"{mine.spent:.0f} ({mine})",
        f"ours without knowing the cost: {_total(other):.0f}; {most} runs a commit, bad from {needed} on: "
        f"{_total(fixed):.0f}, {fixed.right:.0%} right; {_bayesect(bayesect, 249, (0.1, 0.3), seeds)}",
        mine.spent < min(_total(other), _total(fixed)),
    )


def _total(figures: Figures) -> float:
    return figures.runs + BUILD * figures.builds


def _cheapest_repeats(rates: Rates, seeds: int) -> tuple[int, int]:
    """The cheapest fixed number of runs a commit, and threshold, with which 95 % of answers are right."""
    tries = [(most, needed) for most in range(5, 20) for needed in range(2, most)]
    right = [one for one in tries if _repeated(rates, *one, seeds).right >= 0.95]
    return min(right, key=lambda one: _total(_repeated(rates, *one, seeds)))


def _known_references(seeds: int) -> str:
    ten = max((_repeated((0.1, 0.3), 10, bad, seeds) for bad in range(1, 11)), key=lambda found: found.right)
    three, one = _repeated((0.1, 0.3), 3, 2, seeds), _repeated((0.1, 0.3), 1, 1, seeds)
    return (
        f"10 runs a commit, best threshold: {ten.runs:.0f} runs, {ten.right:.0%} right; majority of 3: "
        f"{three.runs:.0f} runs, {three.right:.0%}; git bisect: {one.runs:.0f} runs, {one.right:.0%}"
    )


def _repeated(rates: Rates, most: int, needed: int, seeds: int, n: int = 249) -> Figures:
    """Plain bisection that calls a commit bad when `needed` of up to `most` runs fail, no run after that is decided."""
    runs, builds, right = [], [], []
    for seed in range(max(seeds, 400)):
        random = np.random.default_rng(seed)
        truth, low, high, spent, built = int(random.integers(n)), 0, n - 1, 0, 0
        while low < high:
            middle = (low + high - 1) // 2
            chance = 1 - rates[1] if middle >= truth else rates[0]
            fails = passes = 0
            while fails < needed and passes <= most - needed:
                failed = random.random() < chance
                fails, passes, spent = fails + failed, passes + (not failed), spent + 1
            built += 1
            low, high = (low, middle) if fails >= needed else (middle + 1, high)
        runs.append(spent)
        builds.append(built)
        right.append(low == truth)
    return Figures(mean(runs), mean(builds), 0.0, mean(right), 0.0)


def _bayesect(folder: Path | None, n: int, rates: Rates, seeds: int) -> str:
    """git_bayesect's own search, driven to a posterior of 0.95, when it is there to be imported."""
    made = bisector(folder)
    if made is None:
        return "git_bayesect: not installed"
    done = [_drive(made, n, rates, seed) for seed in range(seeds)]
    runs, builds, right = (mean(part) for part in zip(*done, strict=True))
    return f"git_bayesect: {runs:.1f} runs, {builds:.1f} builds, {right:.1%} right"


def bisector(folder: Path | None) -> Callable[[list[float]], Any] | None:
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        found: Callable[[list[float]], Any] = importlib.import_module("git_bayesect").Bisector
    except ModuleNotFoundError:
        return None
    return found


def _drive(made: Callable[[list[float]], Any], n: int, rates: Rates, seed: int, most: int = 200) -> Sequence[float]:
    """Its index 0 is the newest commit."""
    random = np.random.default_rng(seed)
    truth, bisector, tried = int(random.integers(n)), made([1.0] * n), []
    while bisector.distribution.max() < 0.95 and len(tried) < most:
        index = bisector.select()
        tried.append(index)
        failed = random.random() >= rates[1] if n - 1 - index >= truth else random.random() < rates[0]
        bisector.record(index, bool(failed))
    answer = n - 1 - int(bisector.distribution.argmax())
    return len(tried), len(set(tried)), float(answer == truth and bisector.distribution.max() >= 0.95)
