"""The worst case: a prior may mislead, but never by more than one probe against plain bisection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.search.evidence import Evidence
from service.search.graph import DENSE, Bools, Floats, Range, mass_below
from service.search.position import Position

#: What a misleading prior may cost on top of plain bisection's worst case.
SPARE = 1
#: Share of the way to that bound at which a candidate's weight is held.
FLOOR = 0.85


def bounded(range_: Range, evidence: Evidence, at: Position) -> Position:
    """The position as a choice must see it so that the worst case is kept.

    Places that would break it are worth nothing, and no candidate is believed in so little that finding it would take
    more probes than may be left.
    """
    spent = sum(1 for sha, tally in evidence.tallies.items() if tally.judged and _counts(range_, sha))
    count = float(at.sizes.sum())
    extra = plain_depth(at.range_) - _log2(count)
    depth = plain_depth(range_) + SPARE - spent - extra
    weights = _tempered(at.belief.weights, at.sizes * (FLOOR * 0.5**depth))
    return replace(at, worth=at.worth * _within(at, count, depth), belief=replace(at.belief, weights=weights))


def _within(at: Position, count: float, depth: int) -> Bools:
    """Places after which, whatever the answer, plain bisection could finish with the probes that are left.

    When there is none, the places that split the candidates most evenly.
    """
    below = at.spots.mass(at.sizes)
    larger = np.maximum(below, count - below)
    allowed: Bools = larger <= 2.0 ** (depth - 1)
    if (allowed & (at.worth > 0)).any():
        return allowed
    larger[at.worth <= 0] = np.inf
    most_even: Bools = larger <= larger.min()
    return most_even


def _tempered(weights: Floats, floors: Floats) -> Floats:
    """Weights raised to their floors, the others lowered in proportion to make room.

    Source: in the best tree of bounded depth a leaf's depth is that of its weight, but for those at the bound.
    """
    if floors.sum() >= 1.0:
        even: Floats = floors / floors.sum()
        return even
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(weights * middle, floors).sum() > 1.0 else (middle, high)
    raised: Floats = np.maximum(weights * low, floors)
    raised /= raised.sum()
    return raised


def plain_depth(range_: Range) -> int:
    """Probes that plain bisection needs when each answer leaves the larger side. Exact on a line, too low for a large
    history that cannot be halved."""
    count, depth = len(range_), 0
    if range_.is_line or count > DENSE:
        return _log2(count)
    left = np.ones(count, dtype=bool)
    while count > 1:
        below = mass_below(range_, left.astype(float))
        split = np.where(left, np.minimum(below, count - below), -1.0)
        half = range_.ancestors(int(np.argmax(split)))
        left = left & (half if 2 * (left & half).sum() >= count else ~half)
        count, depth = int(left.sum()), depth + 1
    return depth


def _counts(range_: Range, sha: str) -> bool:
    index = range_.find(sha)
    return index is not None and index != len(range_) - 1


def _log2(count: float) -> int:
    return int(count - 1).bit_length() if count >= 1 else 0
