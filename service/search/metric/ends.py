"""Whether the two ends differ, looked at after every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from service.search.graph import Floats
from service.search.metric.evalue import by_sums, evidence
from service.search.metric.forecast import expected_runs
from service.search.metric.results import Ends
from service.search.metric.samples import Interval, Question, Sample
from service.search.metric.scale import Scale, scaled
from service.search.metric.words import share, told

#: Of the error that is allowed in all, 1 - confidence: for a level that is worse, looked at after every run; for the
#: same, once, when all runs are there; for a spread that is wider, once; for an end that is better, after every run.
WORSE, AT_LAST, WIDER, REVERSED = 0.5, 0.3, 0.1, 0.1
#: Complete separation of three and three numbers is chance in one case of twenty.
LEAST = 4
#: A request is not refused as the wrong way round for less.
LEAST_REVERSED = 6
#: An effect is said to be detectable when it would be seen in four of five cases.
POWER = 0.84


@dataclass(frozen=True, eq=False)
class _Sides:
    """As scaled, larger is worse. `shown`: both in the metric's unit."""

    scale: Scale
    good: Floats
    bad: Floats
    shown: str

    @property
    def gap(self) -> float:
        return float((self.bad - self.good[0]).mean() - (self.good - self.good[0]).mean())

    @property
    def least(self) -> int:
        return min(len(self.good), len(self.bad))


def compare_ends(
    good: Sequence[Sample], bad: Sequence[Sample], question: Question, *, commits: int | None = None
) -> Ends:
    """`commits`: in the range, to say how many runs the search will take. Errors: ValueError for a number that is not
    finite."""
    sides = _sides(good, bad, question)
    if sides.least < LEAST:
        return Ends("unsure", f"each end is measured {LEAST} times at least: {sides.shown}")
    alpha = 1 - question.confidence
    said = _reversed(sides, alpha) or _too_small(sides, question, alpha) or _worse(sides, question, alpha)
    said = said or _undecided(sides, question, alpha)
    return _with_figures(said, sides, question, commits)


def _reversed(sides: _Sides, alpha: float) -> Ends | None:
    found = evidence(sides.good, sides.bad).smaller
    if found < 1 / (REVERSED * alpha) or sides.least < LEAST_REVERSED:
        return None
    other = "lower" if sides.scale.better == "higher" else "higher"
    why = (
        f"the bad end is better than the good end, {_doubt(found)}, if {sides.scale.better} is better; "
        f"was better: {other} meant? {sides.shown}"
    )
    return Ends("reversed", why)


def _too_small(sides: _Sides, question: Question, alpha: float) -> Ends | None:
    """Certainly worse by less than what counts."""
    if question.threshold is None:
        return None
    least = _least_gap(sides, question)
    if not np.isfinite(least):
        return Ends("small", f"a number cannot get worse by {_asked(question)} here: {sides.shown}")
    found = evidence(sides.good, sides.bad - least).smaller
    if found < 1 / (WORSE * alpha):
        return None
    doubt = _doubt(found, "were it as much")
    return Ends("small", f"the bad end is worse by less than {_asked(question)}, {doubt}: {sides.shown}")


def _worse(sides: _Sides, question: Question, alpha: float) -> Ends | None:
    found = evidence(sides.good, sides.bad).larger
    beyond = question.threshold is None or sides.gap >= _least_gap(sides, question)
    if found < 1 / (WORSE * alpha) or not beyond:
        return None
    return Ends("differ", f"the bad end is worse than the good end, {_doubt(found)}: {sides.shown}")


def _undecided(sides: _Sides, question: Question, alpha: float) -> Ends:
    if sides.least < max(question.runs, LEAST):
        return Ends("unsure", f"more runs are needed at both ends: {sides.shown}")
    # Loading scipy.stats takes long, and only the last look needs it.
    from scipy.stats import levene, mannwhitneyu

    level = float(mannwhitneyu(sides.bad, sides.good, alternative="greater").pvalue)
    if level < AT_LAST * alpha:
        if question.threshold is not None and sides.gap < _least_gap(sides, question):
            return Ends(
                "small", f"the bad end is worse (p = {level:.2g}), but not by {_asked(question)}: {sides.shown}"
            )
        return Ends("differ", f"the bad end is worse than the good end (p = {level:.2g}): {sides.shown}")
    centred = [np.abs(side - np.median(side)) for side in (sides.good, sides.bad)]
    wider = float(levene(sides.good, sides.bad, center="median").pvalue) / 2 if all(map(np.any, centred)) else 1.0
    if wider < WIDER * alpha and centred[1].mean() > centred[0].mean():
        why = f"the bad end is as good as the good end on the whole, but varies more (p = {wider:.2g}): {sides.shown}"
        return Ends("differ", why, shape="spread")
    why = f"the bad end cannot be told from the good end with {sides.least} runs of each (p = {level:.2g})"
    return Ends("alike", f"{why}: {sides.shown}")


def _sides(good: Sequence[Sample], bad: Sequence[Sample], question: Question) -> _Sides:
    both = [Sample("good", one.value, one.bench) for one in good] + [Sample("bad", one.value, one.bench) for one in bad]
    found = scaled(both, question, ("good",), "bad")
    shown = f"good end {told([s.value for s in good])}; bad end {told([s.value for s in bad])}"
    return _Sides(found.scale, found.values[: len(good)], found.values[len(good) :], shown)


def _with_figures(said: Ends, sides: _Sides, question: Question, commits: int | None) -> Ends:
    from scipy.special import stdtrit

    scale, level = sides.scale, float(sides.good.mean())
    runs = np.array([len(sides.good), len(sides.bad)], dtype=float)
    spreads = np.array([sides.good.var(ddof=1), sides.bad.var(ddof=1)])
    errors = spreads / runs
    error = float(np.sqrt(errors.sum()))
    # Welch's interval (1947).
    freedom = float(errors.sum() ** 2 / (errors**2 / (runs - 1)).sum()) if error > 0 else 1.0
    reach = float(stdtrit(freedom, 0.975)) * error
    noise = float(np.sqrt((spreads * (runs - 1)).sum() / (runs.sum() - 2)))
    relative = scale.log
    detectable = noise * _detectable(sides.least, 1 - question.confidence)
    return Ends(
        said.verdict,
        said.why,
        scale.effects(Interval(sides.gap, sides.gap - reach, sides.gap + reach), level, relative),
        abs(scale.effect(noise, level, relative)),
        relative,
        said.shape,
        abs(scale.effect(detectable, level, relative)),
        expected_runs(commits, sides.gap, noise, question.confidence) if commits and said.verdict == "differ" else None,
    )


@lru_cache(maxsize=256)
def _detectable(runs: int, alpha: float) -> float:
    """The gap, in units of the noise, that would be seen by now; by halving."""
    low, high, within = 0.0, 20.0, float(2 * runs - 2)
    for _ in range(30):
        middle = (low + high) / 2
        seen = by_sums(runs, runs, middle, within).larger >= 1 / (WORSE * alpha)
        low, high = (low, middle) if seen else (middle, high)
    return high + POWER * float(np.sqrt(2 / runs))


def _least_gap(sides: _Sides, question: Question) -> float:
    return sides.scale.gap(question.threshold or 0.0, float(sides.good.mean()), question.relative)


def _asked(question: Question) -> str:
    return share(question.threshold or 0.0) if question.relative else f"{question.threshold:g}"


def _doubt(found: float, otherwise: str = "were they the same") -> str:
    odds = f"{found:,.0f}" if found < 1e6 else "a million"
    return f"beyond doubt ({otherwise}, less than 1 request in {odds} would look so)"
