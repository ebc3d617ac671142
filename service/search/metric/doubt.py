"""What is measured once more before an answer is given.

One number that is far off by chance looks like a step, and the noise is not normal enough to say how seldom that is.
So the commit that is named, and those right before it, were each run twice at least. And of two steps it takes more
runs to say which is the larger one than to say where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from service.search.graph import Range
from service.search.metric.state import State
from service.search.metric.steps import Place
from service.search.metric.table import GOOD_END, Table

#: Runs of a commit before an answer rests on it, and where there may well be several steps: it takes more to say which
#: is the largest.
TWICE, OFTEN, LIKELY = 2, 3, 0.05
#: Two steps are of about the same size when they certainly differ by less than this share of the larger one, or when
#: their difference is known to this share of the noise and it still cannot be told.
ALIKE, AS_GOOD_AS = 0.4, 0.35
#: Standard deviations to either side of what is taken for certain here: one of them is larger with 90 %.
REACH = 1.28


def unconfirmed(range_: Range, state: State, index: int, skipped: Collection[str] = ()) -> int | None:
    """The commit, or a parent of it, that was run too seldom; None when an answer may rest on them."""
    parents = range_.parent_lists[index] or [GOOD_END]
    wanted = [at for at in (index, *parents) if at == GOOD_END or range_.shas[at] not in skipped]
    counts = {at: runs_of(state.table, at) for at in wanted if at in state.table.commits}
    least = OFTEN if state.posterior.several > LIKELY else TWICE
    few = [at for at, runs in counts.items() if runs < least]
    return min(few, key=lambda at: counts[at]) if few else None


def runs_of(table: Table, commit: int) -> float:
    return float(table.runs[table.commits == commit].sum())


def undecided(range_: Range, state: State, two: Sequence[Place]) -> int | None:
    """Of two known steps, the commit to run once more to tell which one is larger; None when they are about alike.

    Their difference is that of the level between them, doubled, and the levels before and behind both.
    """
    found = state.posterior
    first, second = sorted(two, key=lambda place: place.order)
    use = found.count == first.count
    here = found.spread[use]
    spread = here[:, first.order, first.order] + here[:, second.order, second.order]
    spread -= 2 * here[:, first.order, second.order]
    error = float(np.sqrt(np.average(spread, weights=found.weights[use])))
    noise = float(np.sqrt(found.weights @ found.noise))
    sizes = (first.size.estimate, second.size.estimate)
    apart, reach = abs(sizes[0] - sizes[1]), REACH * error
    if apart < reach and (apart + reach <= ALIKE * max(sizes) or error <= AS_GOOD_AS * noise):
        return None
    rows = state.classes.seen_from(state.table.commits)[:, [int(first.classes[0]), int(second.classes[0])]]
    sides = [~rows[:, 0] & ~rows[:, 1], rows[:, 0] & ~rows[:, 1], rows[:, 0] & rows[:, 1]]
    runs = [max(float(state.table.runs[side].sum()), 0.5) for side in sides]
    middle = int(np.flatnonzero(state.classes.of == first.classes[0])[0])
    at = int(np.argmax([1 / runs[0], 2 / runs[1], 1 / runs[2]]))
    return (GOOD_END if range_.goods else middle, middle, len(range_) - 1)[at]
