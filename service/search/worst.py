"""The worst case: a prior may mislead, but never by more than one probe against plain bisection."""

from __future__ import annotations

import numpy as np

from service.search.evidence import Evidence
from service.search.graph import DENSE, Bools, Range, mass_below
from service.search.position import Position

#: What a misleading prior may cost on top of plain bisection's worst case.
SPARE = 1


def within_budget(range_: Range, evidence: Evidence, at: Position) -> Bools:
    """Places after which, whatever the answer, plain bisection could still finish within its worst case plus SPARE.

    When there is none, the places that split the candidates most evenly.
    """
    spent = sum(1 for sha, tally in evidence.tallies.items() if tally.judged and _counts(range_, sha))
    count = at.sizes.sum()
    below = at.spots.mass(at.sizes)
    larger = np.maximum(below, count - below)
    extra = plain_depth(at.range_) - _log2(count)
    deepest = _budget(range_) - spent - 1 - extra
    allowed: Bools = larger <= 2.0**deepest
    if (allowed & (at.worth > 0)).any():
        return allowed
    larger[at.worth <= 0] = np.inf
    most_even: Bools = larger <= larger.min()
    return most_even


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


def _budget(range_: Range) -> int:
    return plain_depth(range_) + SPARE


def _counts(range_: Range, sha: str) -> bool:
    index = range_.find(sha)
    return index is not None and index != len(range_) - 1


def _log2(count: float) -> int:
    return int(count - 1).bit_length() if count >= 1 else 0
