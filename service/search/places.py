"""The commits that may be probed, and which candidates each of them would convict.

Small ranges and lines are looked at commit by commit. On large ones a shortlist of commits is chosen, and candidates
that no commit of the shortlist tells apart are counted as one: all that follows is then small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.search.belief import Belief
from service.search.graph import DENSE, Bools, Floats, Ints, Range, mass_below

#: The good end, among the places to probe: below it lies nothing.
GOOD_END = -1
#: So many places are looked at closely on a large range, one bit each of a 64-bit word.
SHORTLIST = 64
#: At most so many of them are commits in flight, and as many commits that were tested before.
SOME = 18


@dataclass(frozen=True, eq=False)
class Places:
    """Commits by index; `rows[k, h]` is 1 when candidate h is the k-th one or its ancestor.

    Without rows the range is a line and every commit is a place. The last place is the good end.
    """

    indexes: Ints
    rows: Floats | None

    def mass(self, weights: Floats) -> Floats:
        """The summed weights at or below each place; for several rows of weights, a row each."""
        below = np.cumsum(weights, axis=-1) if self.rows is None else weights @ self.rows.T
        return np.concatenate([below, np.zeros((*below.shape[:-1], 1))], axis=-1)

    def below(self, place: int, width: int) -> Bools:
        """Which of `width` candidates lie at or below a place."""
        index = int(self.indexes[place])
        if index == GOOD_END:
            return np.zeros(width, dtype=bool)
        if self.rows is None:
            return np.arange(width) <= index
        row: Bools = self.rows[place] > 0
        return row

    def at(self, index: int) -> int | None:
        """The place of a commit; None when it is not among them."""
        found = np.flatnonzero(self.indexes == index)
        return int(found[0]) if len(found) else None


@dataclass(frozen=True, eq=False)
class View:
    """As the choice sees a range: places, and the belief over candidates, or over classes of them with their sizes."""

    spots: Places
    belief: Belief
    sizes: Floats


def view(range_: Range, belief: Belief, flying: Sequence[int], tested: Sequence[int], worth: Floats) -> View:
    """Probes in flight are always among the places, by the indexes of their commits in the range."""
    n = len(range_)
    if n <= DENSE:
        rows = None if range_.is_line else range_.rows
        return View(Places(np.append(np.arange(n), GOOD_END), rows), belief, (belief.weights > 0).astype(float))
    chosen = _shortlist(range_, belief, flying, tested, worth)
    above = np.searchsorted(chosen, np.arange(n)) if range_.is_line else np.array(range_.above(chosen), dtype=np.uint64)
    classes, first = _classes(above, belief)
    weights: Floats = np.bincount(classes, weights=belief.weights).astype(float)
    sizes: Floats = np.bincount(classes, weights=belief.weights > 0).astype(float)
    small = Belief(weights, belief.bad_if_good[first], belief.bad_if_bad[first], belief.exact)
    return View(Places(np.append(chosen, GOOD_END), _rows(range_, above[first], len(chosen))), small, sizes)


def _shortlist(range_: Range, belief: Belief, flying: Sequence[int], tested: Sequence[int], worth: Floats) -> list[int]:
    """Commits in flight, tested ones and others nearest to half of the belief, the heaviest candidates with a parent,
    and for every share of the belief the commit of most worth."""
    mass = mass_below(range_, belief.weights)
    off = np.where(worth > 0, np.abs(mass - 0.5), 2.0)
    chosen = dict.fromkeys(flying[:SOME])
    chosen |= dict.fromkeys(sorted(tested, key=lambda index: float(off[index]))[:SOME])
    for index in np.argsort(-belief.weights, kind="stable")[:5].tolist():
        chosen |= dict.fromkeys([index, *range_.parent_lists[index][:1]])
    chosen |= dict.fromkeys(np.argsort(off, kind="stable")[:6].tolist())
    shares = SHORTLIST - len(chosen)
    share = np.minimum((mass * shares).astype(int), shares - 1)
    order = np.lexsort((np.abs(mass - (share + 0.5) / shares), -worth, share))
    best = order[np.unique(share[order], return_index=True)[1]]
    return sorted(chosen | dict.fromkeys(best.tolist()))


def _classes(above: Ints | NDArray[np.uint64], belief: Belief) -> tuple[Ints, Ints]:
    """For each candidate its class, and for each class one candidate: those with the same places above them and the
    same belief about the rates of error."""
    _, by_place = np.unique(above, return_inverse=True)
    _, by_rates = np.unique(belief.bad_if_bad + 1j * belief.bad_if_good, return_inverse=True)
    _, first, classes = np.unique(
        by_place * (int(by_rates.max()) + 1) + by_rates, return_index=True, return_inverse=True
    )
    return classes.astype(np.int64), first


def _rows(range_: Range, above: Ints | NDArray[np.uint64], count: int) -> Floats:
    """On a line a class says how many places lie below it; elsewhere, by bits, which places lie above."""
    places = np.arange(count)[:, None]
    if range_.is_line:
        return (above[None, :] <= places).astype(float)
    return ((above[None, :] >> places.astype(np.uint64)) & np.uint64(1)).astype(float)
