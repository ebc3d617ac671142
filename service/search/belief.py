"""What is believed after the evidence: a weight for each candidate, and what a probe would show were it the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.search.candidates import candidates
from service.search.evidence import Evidence
from service.search.graph import Bools, Floats, Ints, Range
from service.search.noise import Counts, Noise

Prior = Mapping[str, float]
#: What a candidate keeps of the belief, whatever a prior says against it.
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Belief:
    """`weights` sum to 1 (to 0 when nothing explains the evidence). With `exact`, verdicts are taken at their word;
    otherwise `bad_if_good` and `bad_if_bad` hold, for each candidate were it the answer, the chance that the next run
    of a good and of a bad commit fails."""

    weights: Floats
    bad_if_good: Floats
    bad_if_bad: Floats
    exact: bool = True

    @property
    def possible(self) -> bool:
        return bool(self.weights.any())


def believe(range_: Range, evidence: Evidence, prior: Prior | None = None, noise: Noise | None = None) -> Belief:
    start = prior_weights(range_, prior)
    if noise is None:
        zeros = np.zeros(len(range_))
        return Belief(_kept(start, candidates(range_, evidence)), zeros, zeros + 1.0)
    counts, same = _counts(range_, evidence).distinct()
    base = noise.log_likelihood(counts)
    if evidence.certain:
        start = start * candidates(range_, evidence.at_their_word)
    with np.errstate(invalid="ignore"):
        bad_if_good = np.exp(noise.log_likelihood(counts.plus(bad_below=1)) - base)
        bad_if_bad = np.exp(noise.log_likelihood(counts.plus(bad_above=1)) - base)
    scaled = start * np.exp(base - max(base.max(), -1e300))[same]
    return Belief(
        _normalised(scaled), np.nan_to_num(bad_if_good)[same], np.nan_to_num(bad_if_bad, nan=1.0)[same], exact=False
    )


def prior_weights(range_: Range, prior: Prior | None) -> Floats:
    """Positive everywhere, sum 1. A commit that the prior leaves out stays possible."""
    n = len(range_)
    if prior is None:
        return np.full(n, 1.0 / n)
    given = np.array([prior.get(sha, 0.0) for sha in range_.shas])
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise ValueError("a prior weight is negative or no number")
    most = given.max()
    return _normalised(given / most + LEAST) if most > 0 else prior_weights(range_, None)


def _kept(weights: Floats, left: Bools) -> Floats:
    """The weights of the candidates left, none of them so light that asking about it would seem to tell nothing."""
    kept = _normalised(weights * left)
    return _normalised(np.where(left, np.maximum(kept, LEAST / max(int(left.sum()), 1)), 0.0))


def _normalised(weights: Floats) -> Floats:
    total = weights.sum()
    scaled: Floats = weights / total if total > 0 else weights
    return scaled


def _counts(range_: Range, evidence: Evidence) -> Counts:
    """Commits outside the range, the good ends, would be good whichever candidate it was."""
    tested, goods, bads = [], [], []
    for sha, tally in evidence.tallies.items():
        if tally.judged and sha not in evidence.certain:
            tested.append(range_.find(sha))
            goods.append(tally.good)
            bads.append(tally.bad)
    inside = [place for place, index in enumerate(tested) if index is not None]
    indexes = [index for index in tested if index is not None]
    good_above = _sums_above(range_, indexes, [goods[place] for place in inside])
    bad_above = _sums_above(range_, indexes, [bads[place] for place in inside])
    return Counts(sum(goods) - good_above, sum(bads) - bad_above, good_above, bad_above)


def _sums_above(range_: Range, indexes: list[int], counts: list[int]) -> Ints:
    """For each candidate, the sum of the counts of the commits that are it or descend from it."""
    if range_.is_line:
        at = np.zeros(len(range_), dtype=np.int64)
        np.add.at(at, indexes, counts)
        summed: Ints = np.cumsum(at[::-1])[::-1]
        return summed
    known: dict[int, int] = {0: 0}
    masks = range_.above(indexes)
    for mask in set(masks) - {0}:
        known[mask] = sum(count for bit, count in enumerate(counts) if mask >> bit & 1)
    return np.fromiter((known[mask] for mask in masks), dtype=np.int64, count=len(masks))
