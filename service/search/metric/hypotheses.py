"""The histories that are thought possible, and the belief in each: up to four steps, a ramp, another spread.

A step may lie at any candidate; those that the measured commits do not tell apart are one class, and count as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from service.search.graph import Bools, Floats, Ints
from service.search.metric.model import Columns, Fits, Model, fits, uneven
from service.search.metric.table import GOOD_END, Classes

#: How likely each shape is before anything was measured: steps by their number, a ramp, a step with another spread.
STEPS, RAMP, SPREAD = (0.68, 0.12, 0.06, 0.03), 0.06, 0.05
#: Variances behind a step, as multiples of those before it.
RATIOS = (1 / 16, 1 / 4, 4.0, 16.0)
#: So many pairs of steps, the likeliest, are looked at with a third one, and as many triples with a fourth.
BEAM = 16
#: Hypotheses that are less likely than the likeliest by this factor do not matter.
NEGLIGIBLE = 1e-4
#: A ramp begins and ends at one of so many measured commits, spread over the range.
BENDS = 14


@dataclass(frozen=True, eq=False)
class Posterior:
    """`columns[h]`: where hypothesis h has its steps, -1 beyond their number; from `len(classes)` on, `ramps`.

    `largest[h, j]`: the chance that its j-th step is the largest worsening. `ratio`: logarithm of the noise's variance
    behind the step over that before it.
    """

    classes: Classes
    ramps: Floats
    columns: Ints
    weights: Floats
    steps: Floats
    spread: Floats
    noise: Floats
    level: Floats
    ratio: Floats
    largest: Floats

    @property
    def is_ramp(self) -> Bools:
        found: Bools = self.columns[:, 0] >= len(self.classes)
        return found

    @property
    def count(self) -> Ints:
        found: Ints = (self.columns >= 0).sum(axis=1)
        return found

    @property
    def several(self) -> float:
        """The belief in more than one step."""
        return float(self.weights[self.count > 1].sum())

    @property
    def places(self) -> Floats:
        """By class, the belief that the largest step lies in it; what is missing to 1 is that of a ramp."""
        used = (self.columns >= 0) & ~self.is_ramp[:, None]
        share = self.weights[:, None] * self.largest
        return np.bincount(self.columns[used], share[used], len(self.classes)).astype(float)


def posterior(model: Model, classes: Classes) -> Posterior:
    bends, ramp_weights = _ramps(model, classes)
    rows = classes.seen_from(model.table.commits).astype(float)
    columns = model.columns(np.concatenate([rows, ramped(bends, model.table.commits)], axis=1))
    parts = [_single(model, columns, classes), *_several(model, columns, classes)]
    if len(bends):
        chosen = (len(classes) + np.arange(len(bends)))[:, None]
        parts.append(_part(chosen, np.log(RAMP * ramp_weights), fits(model, columns, chosen)))
    singles = np.arange(len(classes))[:, None]
    for ratio in RATIOS:
        prior = np.log(SPREAD / len(RATIOS) * classes.sizes / classes.sizes.sum())
        parts.append(_part(singles, prior, uneven(model, rows, ratio), np.log(ratio)))
    return _joined(classes, bends, parts, model.freedom)


@dataclass(frozen=True, eq=False)
class _Part:
    chosen: Ints
    score: Floats
    fits: Fits
    ratio: float = 0.0

    def kept(self, best: float) -> _Part:
        keep = self.score > best + np.log(NEGLIGIBLE)
        found = self.fits
        few = Fits(found.likelihood[keep], found.steps[keep], found.spread[keep], found.noise[keep], found.level[keep])
        return _Part(self.chosen[keep], self.score[keep], few, self.ratio)


def _part(chosen: Ints, prior: Floats, found: Fits, ratio: float = 0.0) -> _Part:
    return _Part(chosen, prior + found.likelihood, found, ratio)


def _single(model: Model, columns: Columns, classes: Classes) -> _Part:
    """Two steps in one class look like one, and are counted with it."""
    share = classes.sizes / classes.sizes.sum()
    prior = np.log(STEPS[0] * share + STEPS[1] * share**2 * (1 - 1 / classes.sizes))
    chosen = np.arange(len(classes))[:, None]
    return _part(chosen, prior, fits(model, columns, chosen))


def _several(model: Model, columns: Columns, classes: Classes) -> list[_Part]:
    """All pairs, and the likeliest of them with further steps anywhere."""
    if len(classes) < 2:
        return []
    parts = [_scored(model, columns, classes, np.stack(np.triu_indices(len(classes), 1), axis=1))]
    for _ in STEPS[2 : len(classes)]:
        best = parts[-1].chosen[np.argsort(-parts[-1].score)[:BEAM]]
        parts.append(_scored(model, columns, classes, _with_one_more(best, len(classes))))
    return parts


def _scored(model: Model, columns: Columns, classes: Classes, chosen: Ints) -> _Part:
    """So many steps lie in these classes in as many ways as there are orders to draw them in."""
    count = chosen.shape[1]
    share = np.log(classes.sizes / classes.sizes.sum())
    prior = np.log(factorial(count) * STEPS[count - 1]) + share[chosen].sum(axis=1)
    return _part(chosen, prior, fits(model, columns, chosen))


def _with_one_more(chosen: Ints, classes: int) -> Ints:
    """Each with every class that it does not hold yet, in order, once."""
    added = np.tile(np.arange(classes), len(chosen))
    found = np.sort(np.column_stack([np.repeat(chosen, classes, axis=0), added]), axis=1)
    distinct = (np.diff(found, axis=1) > 0).all(axis=1)
    return np.unique(found[distinct], axis=0)


def _ramps(model: Model, classes: Classes) -> tuple[Floats, Floats]:
    """Pairs of measured places with another between, by index in the range, and the weight of each."""
    n = int(classes.sizes.sum())
    at = np.unique(np.concatenate([model.table.commits, [GOOD_END]]))
    if len(at) > BENDS:
        wanted = np.linspace(at[0], at[-1], BENDS)
        bends = np.unique(at[np.abs(at[None, :] - wanted[:, None]).argmin(axis=1)])
    else:
        bends = at
    gaps = np.gradient(bends.astype(float)) if len(bends) > 1 else np.ones(len(bends))
    first, second = np.triu_indices(len(bends), 1)
    inside = np.searchsorted(at, bends[second]) - np.searchsorted(at, bends[first]) > 1
    first, second = first[inside], second[inside]
    weights = gaps[first] * gaps[second] / float(n + 1) ** 2 * 2
    return np.stack([bends[first], bends[second]], axis=1).astype(float).reshape(-1, 2), weights


def ramped(bends: Floats, commits: Ints) -> Floats:
    """How much of each ramp lies behind each commit: linear in topological order."""
    low, high = bends[:, 0], bends[:, 1]
    found: Floats = np.clip((commits[:, None] - low[None, :]) / (high - low)[None, :], 0.0, 1.0)
    return found


def _joined(classes: Classes, ramps: Floats, parts: list[_Part], freedom: float) -> Posterior:
    top = max(float(part.score.max()) for part in parts if len(part.score))
    parts = [part.kept(top) for part in parts]
    widest = max(part.chosen.shape[1] for part in parts)
    weights = np.exp(np.concatenate([part.score for part in parts]) - top)
    columns = np.concatenate([_wide(part.chosen, widest, -1) for part in parts])
    steps = np.concatenate([_wide(part.fits.steps, widest, 0.0) for part in parts])
    spread = np.zeros((len(steps), widest, widest))
    begin = 0
    for part in parts:
        end, count = begin + len(part.chosen), part.chosen.shape[1]
        spread[begin:end, :count, :count] = part.fits.spread * part.fits.noise[:, None, None]
        begin = end
    return Posterior(
        classes,
        ramps,
        columns,
        weights / weights.sum(),
        steps,
        spread,
        np.concatenate([part.fits.noise for part in parts]),
        np.concatenate([part.fits.level for part in parts]),
        np.concatenate([np.full(len(part.score), part.ratio) for part in parts]),
        _largest(columns, steps, spread, freedom),
    )


def _wide(found: np.ndarray, widest: int, filler: float) -> np.ndarray:
    wide = np.full((len(found), widest), filler, dtype=found.dtype)
    wide[:, : found.shape[1]] = found
    return wide


def _largest(columns: Ints, steps: Floats, spread: Floats, freedom: float) -> Floats:
    """From the chance of each step to be larger than each other one, by Student's t."""
    from scipy.special import stdtr

    found = np.where(columns >= 0, 1.0, 0.0)
    for one in range(columns.shape[1]):
        for other in range(one):
            both = np.flatnonzero((columns[:, one] >= 0) & (columns[:, other] >= 0))
            gap = steps[both, one] - steps[both, other]
            error = spread[both, one, one] + spread[both, other, other] - 2 * spread[both, one, other]
            larger = stdtr(freedom, gap / np.sqrt(np.maximum(error, 1e-300)))
            found[both, one] *= larger
            found[both, other] *= 1 - larger
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.maximum(total, 1e-300), np.where(columns >= 0, 1.0, 0.0))
