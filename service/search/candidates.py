"""Which candidates are left when every verdict is taken at its word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.evidence import Evidence, Observation
from service.search.graph import Bools, Range

#: So many skips, and more than verdicts, and a commit is taken for one that cannot be tested.
HARDLY = 3


@dataclass(frozen=True)
class Conflict:
    """Observations that cannot all be true, and why."""

    observations: tuple[Observation, ...]
    why: str


def candidates(range_: Range, evidence: Evidence) -> Bools:
    """Candidates that are ancestors of every bad commit and of no good one; skips say nothing."""
    tested: list[int] = []
    bad_bits = good_bits = 0
    for sha, tally in evidence.tallies.items():
        index = range_.find(sha)
        if index is None or not tally.judged:
            continue
        if tally.bad:
            bad_bits |= 1 << len(tested)
        if tally.good:
            good_bits |= 1 << len(tested)
        tested.append(index)
    if not tested:
        return np.ones(len(range_), dtype=bool)
    if range_.is_line:
        return _on_a_line(len(range_), tested, bad_bits, good_bits)
    above = range_.above(tested)
    return np.fromiter(((mask & bad_bits) == bad_bits and not mask & good_bits for mask in above), dtype=bool)


def skipped(range_: Range, evidence: Evidence) -> Bools:
    """Commits that were tried and never judged, or hardly ever."""
    found = np.zeros(len(range_), dtype=bool)
    for sha, tally in evidence.tallies.items():
        index = range_.find(sha)
        hardly = tally.skip >= HARDLY and tally.skip > tally.judged
        if index is not None and tally.skip and (hardly or not tally.judged):
            found[index] = True
    return found


def conflict(range_: Range, evidence: Evidence) -> Conflict | None:
    """A pair of observations that no first bad commit explains; None when some candidate is left."""
    outside = [seen for seen in evidence if seen.verdict == "bad" and range_.find(seen.sha) is None]
    if outside:
        return Conflict((outside[0],), "a good end was judged bad")
    if candidates(range_, evidence).any():
        return None
    goods = [seen for seen in evidence if seen.verdict == "good" and range_.find(seen.sha) is not None]
    bads = [seen for seen in evidence if seen.verdict == "bad"]
    for good in goods:
        for bad in bads:
            if good.sha == bad.sha:
                return Conflict((bad, good), "the same commit was judged bad and good")
            if _reaches(range_, good.sha, bad.sha):
                return Conflict((bad, good), "a commit was judged good although its ancestor was judged bad")
    ends = [seen for seen in goods if seen.sha == range_.shas[-1]]
    if ends:
        return Conflict((ends[0],), "the bad end was judged good")
    return _two_origins(range_, evidence, bads)


def _reaches(range_: Range, descendant: str, ancestor: str) -> bool:
    low, high = range_.find(ancestor), range_.find(descendant)
    return low is not None and high is not None and bool(range_.ancestors(high)[low])


def _two_origins(range_: Range, evidence: Evidence, bads: list[Observation]) -> Conflict:
    """The bad commits share no candidate that is left: the observations that are needed to see it, bad ones first."""
    needed = [*bads, *(seen for seen in evidence if seen.verdict == "good")]
    for seen in list(reversed(needed)):
        rest = [other for other in needed if other is not seen]
        if not candidates(range_, Evidence(tuple(rest))).any():
            needed = rest
    return Conflict(tuple(needed), "commits were judged bad that share no candidate: it broke more than once")


def _on_a_line(n: int, tested: list[int], bad_bits: int, good_bits: int) -> Bools:
    bads = [index for bit, index in enumerate(tested) if bad_bits >> bit & 1]
    goods = [index for bit, index in enumerate(tested) if good_bits >> bit & 1]
    places = np.arange(n)
    left: Bools = (places <= min(bads, default=n - 1)) & (places > max(goods, default=-1))
    return left
