"""The places where it got worse, and the level of each commit that was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.graph import Bools, Floats, Ints, Range
from service.search.metric.results import Step
from service.search.metric.samples import Interval, Question
from service.search.metric.state import State
from service.search.metric.table import GOOD_END

#: One more step is counted when the belief in so many is at least this.
COUNTED = 0.8
#: Of a standard deviation, to where the truth lies with 95 %.
REACH = 1.96


@dataclass(frozen=True, eq=False)
class Place:
    """The `order`-th step of the histories with `count` steps: `classes` hold it, with their `chances`; its size as
    scaled, and the chance that it is the largest."""

    order: int
    count: int
    classes: Ints
    chances: Floats
    size: Interval
    before: float
    largest: float


def places(state: State, confidence: float) -> list[Place]:
    """In topological order."""
    found = state.posterior
    if found.is_ramp.all():
        return []
    weights = np.where(found.is_ramp, 0.0, found.weights)
    weights = weights / weights.sum()
    at_least = [float(weights[found.count >= count].sum()) for count in range(1, found.columns.shape[1] + 1)]
    count = max(number for number, belief in enumerate(at_least, start=1) if number == 1 or belief >= COUNTED)
    use = (found.count == count) & (weights > 0)
    weights = weights[use] / weights[use].sum()
    level, made = float(weights @ found.level[use]), []
    for order in range(count):
        size = _mixed(weights, found.steps[use, order], found.spread[use, order, order])
        chances = np.bincount(found.columns[use, order], weights, len(found.classes)).astype(float)
        few: Ints = np.sort(held(chances, confidence))
        largest = float(weights @ found.largest[use, order])
        made.append(Place(order, count, few, chances[few], size, level, largest))
        level += size.estimate
    return made


def held(chances: Floats, confidence: float) -> Ints:
    """The fewest that hold so much, the likeliest first."""
    order = np.argsort(-chances, kind="stable")
    return order[: int(np.searchsorted(np.cumsum(chances[order]), confidence * chances.sum() * (1 - 1e-12))) + 1]


def _mixed(weights: Floats, means: Floats, variances: Floats) -> Interval:
    mean = float(weights @ means)
    reach = REACH * float(np.sqrt(weights @ (variances + (means - mean) ** 2)))
    return Interval(mean, mean - reach, mean + reach)


def narrowed(state: State, place: Place) -> bool:
    """To one commit."""
    return len(place.classes) == 1 and bool(state.classes.sizes[place.classes[0]] == 1)


def above(state: State, question: Question, found: list[Place]) -> list[Place]:
    """Those that count, the largest first: of the threshold at least or, without one, worse beyond doubt."""
    ordered = sorted(found, key=lambda place: -place.largest)
    if question.threshold is None:
        return [place for at, place in enumerate(ordered) if at == 0 or place.size.low > 0]
    least = state.scaled.scale.gap(question.threshold, good_level(state), question.relative)
    return [place for at, place in enumerate(ordered) if at == 0 or place.size.estimate >= least]


def step(range_: Range, state: State, place: Place) -> Step:
    members = np.flatnonzero(np.isin(state.classes.of, place.classes))
    shas = tuple(range_.shas[index] for index in members.tolist())
    return Step(shas, _effect(state, place), place.largest)


def _effect(state: State, place: Place) -> Interval:
    scale, good, before = state.scaled.scale, good_level(state), state.table.centre + place.before
    unit = 1.0 if not scale.log else abs(scale.level(good))
    sizes = (place.size.estimate, place.size.low, place.size.high)
    return Interval(*(scale.effect(size, before, relative=False) / unit for size in sizes))


def good_level(state: State) -> float:
    """As scaled, on the first bench where it was measured there."""
    cells = state.table
    mine = (cells.commits == GOOD_END) & (cells.benches == 0)
    if mine.any():
        return cells.centre + float(cells.total[mine].sum() / cells.runs[mine].sum())
    return cells.centre + float(state.posterior.weights @ state.posterior.level)


def levels(range_: Range, state: State) -> dict[str, Interval]:
    """By commit, from its own runs alone. The interval is that of the noise of all."""
    cells, noise = state.table, float(state.posterior.weights @ state.posterior.noise)
    total = cells.total - cells.runs * _offsets(state)[cells.benches]
    found = {}
    for commit in np.unique(cells.commits).tolist():
        mine: Bools = cells.commits == commit
        runs = float(cells.runs[mine].sum())
        middle, reach = cells.centre + float(total[mine].sum()) / runs, REACH * float(np.sqrt(noise / runs))
        sha = range_.goods[0] if commit == GOOD_END else range_.shas[commit]
        found[sha] = state.scaled.scale.levels(Interval(middle, middle - reach, middle + reach))
    return found


def _offsets(state: State) -> Floats:
    """Of each bench against the first one, by the commits that were measured on both."""
    cells = state.table
    found = np.zeros(len(cells.names))
    first = {int(c): at for at, (c, b) in enumerate(zip(cells.commits, cells.benches, strict=True)) if b == 0}
    for bench in range(1, len(cells.names)):
        gaps, weights = [], []
        for at in np.flatnonzero(cells.benches == bench).tolist():
            if (other := first.get(int(cells.commits[at]))) is not None:
                gaps.append(cells.total[at] / cells.runs[at] - cells.total[other] / cells.runs[other])
                weights.append(1 / (1 / cells.runs[at] + 1 / cells.runs[other]))
        if gaps:
            found[bench] = float(np.average(gaps, weights=weights))
    return found
