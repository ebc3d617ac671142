"""What measuring a commit would tell about where the largest step is: the mutual information between the number and the
place, in bits.

The number's law is a mixture of normal ones, one for each place. Its information is taken for that of a normal law with
the same variance (Shannon, A mathematical theory of communication, 1948, section 25): an upper bound, close to the
truth where noise is large, and in the right order where it is small. A difference in spread counts likewise, by the
logarithm of the variance, of which a run tells half a unit (Fisher).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.search.graph import Bools, Floats, Ints, Range, mass_below
from service.search.metric.hypotheses import Posterior, ramped
from service.search.metric.state import State
from service.search.metric.table import GOOD_END, Classes, classes
from service.search.position import HASTE, testable

#: On a range of more commits than these so many are looked at closely, besides those that were measured.
EVERY, SHORTLIST = 64, 40
#: Places that hold less of the belief do not matter.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class Value:
    """`places`: by index in the range, the good end last. `bits`: of one more run there, whatever is in flight.
    `worth`: bits for the time it takes, on top of what is in flight; 0 where nothing can be measured."""

    places: Ints
    bits: Floats
    worth: Floats

    @property
    def most(self) -> float:
        return float(self.bits[self.worth > 0].max(initial=0.0))

    @property
    def best(self) -> int:
        return int(self.places[int(np.argmax(self.worth))])


def value(
    range_: Range,
    state: State,
    skipped: Collection[str] = (),
    in_flight: Sequence[str] = (),
    cost: Mapping[str, float] | None = None,
    target: Floats | None = None,
) -> Value:
    """`target[h, j]`: the share of hypothesis h in which its j-th step is the one that is sought; without it, the
    largest one is."""
    untestable = np.zeros(len(range_), dtype=bool)
    untestable[[index for sha in skipped if (index := range_.find(sha)) is not None]] = True
    chances = testable(untestable)
    chances[state.table.tested] = 1.0
    flying = [GOOD_END if (index := range_.find(sha)) is None else index for sha in in_flight]
    fine = _fine(range_, state, [index for index in flying if index != GOOD_END], chances)
    places = np.append(fine.places, GOOD_END)
    expected = _expected(state, fine, places, state.posterior.largest if target is None else target)
    bits = _bits(expected, [])
    at = [int(np.flatnonzero(places == index)[0]) for index in flying]
    worth = (_bits(expected, at) if at else bits) * np.append(chances[fine.places], 1.0 if range_.goods else 0.0)
    if cost is not None:
        shas = [range_.shas[index] for index in fine.places.tolist()] + list(range_.goods[:1] or ("",))
        worth /= np.array([max(cost.get(sha, 1.0), 1e-9) for sha in shas]) ** HASTE
    return Value(places, bits, worth)


@dataclass(frozen=True, eq=False)
class _Expected:
    """By place and by where the largest step may be (a ramp last): the level, and the logarithm of the variance."""

    weights: Floats
    levels: Floats
    ratios: Floats
    noise: float


def _bits(expected: _Expected, flying: Sequence[int]) -> Floats:
    level = _deviations(expected.levels, expected.weights)
    ratio = _deviations(expected.ratios, expected.weights)
    for place in flying:
        _learn(level, place, expected.noise)
        _learn(ratio, place, 2.0)
    signal, other = (level**2).sum(axis=1) / expected.noise, (ratio**2).sum(axis=1) / 2.0
    found: Floats = 0.5 * np.log2(1 + signal) + 0.5 * np.log2(1 + other)
    return found


def _deviations(levels: Floats, weights: Floats) -> Floats:
    found: Floats = (levels - (levels @ weights)[:, None]) * np.sqrt(weights)
    return found


def _learn(deviations: Floats, place: int, noise: float) -> None:
    """What a run at this place will have taught: the covariance that is left after it."""
    seen = deviations[place]
    size = float(seen @ seen)
    if size > 0:
        share = (1 - np.sqrt(noise / (noise + size))) / size
        deviations -= share * np.outer(deviations @ seen, seen)


def _expected(state: State, fine: Classes, places: Ints, target: Floats) -> _Expected:
    found, coarse = state.posterior, state.classes
    weights, level, steps, ratio = _by_place(found, target)
    first = np.unique(fine.of, return_index=True)[1]
    of = coarse.of[first]
    shares = weights[of] * fine.sizes / coarse.sizes[of]
    keep = shares > NEGLIGIBLE
    of, rows = of[keep], np.concatenate([fine.rows, np.zeros((1, len(fine)), dtype=bool)])[:, keep]
    behind = np.zeros((len(places), len(coarse)))
    for_all = np.zeros((len(fine), len(coarse)))
    for_all[np.arange(len(fine)), coarse.of[first]] = fine.sizes / coarse.sizes[coarse.of[first]]
    behind[:-1] = fine.rows @ for_all
    main = np.diagonal(steps).copy()
    others = steps - np.diag(main)
    base = level[None, :] + behind @ others.T
    levels = base[:, of] + main[of] * rows
    ramp, at_ramp = _ramp(found, places)
    return _Expected(
        np.append(shares[keep], ramp),
        np.column_stack([levels, at_ramp]),
        np.column_stack([ratio[of] * rows, np.zeros(len(places))]),
        float(found.weights @ found.noise),
    )


def _by_place(found: Posterior, target: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """By class that holds the step sought: the belief in it, and then the mean level before any step, the mean steps at
    each class, and the mean logarithm of the ratio of variances."""
    count = len(found.classes)
    weights, level, ratio, steps = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros((count, count))
    use = ~found.is_ramp
    columns = found.columns[use]
    for at in range(columns.shape[1]):
        rows = np.flatnonzero(columns[:, at] >= 0)
        where, share = columns[rows, at], (found.weights[use] * target[use, at])[rows]
        np.add.at(weights, where, share)
        np.add.at(level, where, share * found.level[use][rows])
        np.add.at(ratio, where, share * found.ratio[use][rows])
        for other in range(columns.shape[1]):
            there = columns[rows, other] >= 0
            size = share * found.steps[use][rows, other]
            np.add.at(steps, (where[there], columns[rows, other][there]), size[there])
    scale = np.maximum(weights, 1e-300)
    return weights, level / scale, steps / scale[:, None], ratio / scale


def _ramp(found: Posterior, places: Ints) -> tuple[float, Floats]:
    use = found.is_ramp
    weight = float(found.weights[use].sum())
    if weight == 0.0:
        return 0.0, np.zeros(len(places))
    which = found.columns[use, 0] - len(found.classes)
    levels = found.level[use] + ramped(found.ramps[which], places) * found.steps[use, 0]
    return weight, (levels @ found.weights[use]) / weight


def _fine(range_: Range, state: State, flying: Sequence[int], chances: Floats) -> Classes:
    """The commits worth a look, and the candidates that they tell apart."""
    n = len(range_)
    if n <= EVERY:
        rows: Bools = np.tril(np.ones((n, n), dtype=bool)) if range_.is_line else range_.matrix
        return Classes(np.arange(n), np.arange(n), np.ones(n), rows)
    belief = state.posterior.places[state.classes.of] / state.classes.sizes[state.classes.of]
    mass = mass_below(range_, belief)
    chosen = {*state.table.tested, *flying}
    for index in np.argsort(-belief, kind="stable")[:4].tolist():
        chosen |= {index, *range_.parent_lists[index][:1]}
    share = np.minimum((mass * SHORTLIST).astype(int), SHORTLIST - 1)
    order = np.lexsort((np.abs(mass - (share + 0.5) / SHORTLIST), -chances, share))
    best = order[np.unique(share[order], return_index=True)[1]]
    return classes(range_, sorted(chosen | set(best.tolist())))
