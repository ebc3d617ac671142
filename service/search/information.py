"""How much a probe would tell: the mutual information, in bits, between its verdict and the first bad commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.search.belief import Belief
from service.search.graph import DENSE, Bools, Floats, Ints, Range, mass_below

#: The good end, among the places to probe.
GOOD_END = -1
#: Above DENSE commits on a history with merges, so many places are looked at closely. One bit each of a 64-bit word.
SHORTLIST = 64
#: At most so many combinations of answers are followed for the probes in flight, the likeliest ones.
FUTURES = 48


@dataclass(frozen=True, eq=False)
class Places:
    """Commits that may be probed, by index; `rows[k, h]` says that candidate h is the k-th one or its ancestor.

    Without rows the range is a line and every commit is a place. The last place is the good end, with nothing below it.
    """

    range_: Range
    indexes: Ints
    rows: Floats | None

    def mass(self, weights: Floats) -> Floats:
        """The summed weights at or below each place; for several rows of weights, a row each."""
        below = np.cumsum(weights, axis=-1) if self.rows is None else weights @ self.rows.T
        return np.concatenate([below, np.zeros((*below.shape[:-1], 1))], axis=-1)

    def below(self, place: int) -> Bools:
        index = int(self.indexes[place])
        if index == GOOD_END:
            return np.zeros(len(self.range_), dtype=bool)
        if self.rows is not None:
            row: Bools = self.rows[place] > 0
            return row
        return np.arange(len(self.range_)) <= index

    def at(self, index: int) -> int | None:
        """The place of a commit; None when it is not among them."""
        found = np.flatnonzero(self.indexes == index)
        return int(found[0]) if len(found) else None


def places(range_: Range, belief: Belief, wanted: Sequence[int] = ()) -> Places:
    """Every commit where that is cheap, otherwise a shortlist: the wanted ones, and others spread over the belief."""
    n = len(range_)
    if range_.is_line:
        return Places(range_, np.append(np.arange(n), GOOD_END), None)
    if n <= DENSE:
        return Places(range_, np.append(np.arange(n), GOOD_END), range_.rows)
    chosen = _shortlist(range_, belief, wanted)
    masks = np.array(range_.above(chosen), dtype=np.uint64)
    rows = np.array([(masks >> np.uint64(bit)) & np.uint64(1) for bit in range(len(chosen))], dtype=np.float64)
    return Places(range_, np.append(chosen, GOOD_END), rows)


def _shortlist(range_: Range, belief: Belief, wanted: Sequence[int]) -> list[int]:
    """The commits nearest to evenly spread shares of the belief, the heaviest candidates and their parents."""
    mass = mass_below(range_, belief.weights)
    chosen = dict.fromkeys(wanted[: SHORTLIST // 2])
    for index in np.argsort(-belief.weights, kind="stable")[:6].tolist():
        chosen |= dict.fromkeys([index, *range_.parent_lists[index][:1]])
    chosen |= dict.fromkeys(np.argsort(np.abs(mass - 0.5), kind="stable")[:8].tolist())
    order = np.argsort(mass, kind="stable")
    room = SHORTLIST - len(chosen)
    shares = (np.arange(room) + 0.5) / room
    spread = order[np.minimum(np.searchsorted(mass[order], shares), len(order) - 1)]
    return list((chosen | dict.fromkeys(spread.tolist())).keys())[:SHORTLIST]


def start(belief: Belief) -> Floats:
    """The future before any answer: one row, the belief itself."""
    return belief.weights[None, :]


def after(futures: Floats, belief: Belief, below: Bools) -> Floats:
    """The rows of `futures` split by both answers of one more probe; each row sums to its probability."""
    bad = np.where(below, belief.bad_if_bad, belief.bad_if_good)
    split: Floats = np.concatenate([futures * bad, futures * (1.0 - bad)])
    chances = split.sum(axis=1)
    split = split[chances > 1e-12]
    if len(split) > FUTURES:
        split = split[np.argsort(-split.sum(axis=1), kind="stable")[:FUTURES]]
    return split


def bits_left(futures: Floats) -> float:
    """Expected entropy of the belief, in bits, over all futures."""
    shares = futures / futures.sum(axis=1, keepdims=True)
    return -float((futures * np.log2(np.clip(shares, 1e-300, 1.0))).sum())


def gain(spots: Places, belief: Belief, futures: Floats) -> Floats:
    """Expected bits from one more probe at each place, over all futures."""
    chance = futures.sum(axis=1, keepdims=True)
    if belief.exact:
        bits: Floats = (chance * entropy(spots.mass(futures) / chance)).sum(axis=0)
        return bits
    bad = _expected(spots, futures, belief.bad_if_bad, belief.bad_if_good)
    known = _expected(spots, futures, entropy(belief.bad_if_bad), entropy(belief.bad_if_good))
    noisy: Floats = np.maximum((chance * entropy(bad / chance) - known).sum(axis=0), 0.0)
    return noisy


def chance_of_bad(range_: Range, belief: Belief, index: int) -> float:
    """Probability that a probe of this commit is bad."""
    below = range_.ancestors(index)
    return float((belief.weights * np.where(below, belief.bad_if_bad, belief.bad_if_good)).sum())


def _expected(spots: Places, futures: Floats, at_or_below: Floats, otherwise: Floats) -> Floats:
    """Sum over candidates of weight times one value where the place is at or above the candidate, another elsewhere."""
    rest = futures * otherwise
    found: Floats = spots.mass(futures * at_or_below - rest) + rest.sum(axis=1, keepdims=True)
    return found


def entropy(p: Floats) -> Floats:
    """Bits of a yes or no question whose yes has probability p."""
    inside = np.clip(p, 1e-300, 1.0)
    outside = np.clip(1.0 - p, 1e-300, 1.0)
    bits: Floats = -(inside * np.log2(inside) + outside * np.log2(outside))
    bits[(p <= 1e-12) | (p >= 1.0 - 1e-12)] = 0.0
    return bits
