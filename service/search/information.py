"""How much a probe would tell: the mutual information, in bits, between its verdict and the first bad commit."""

from __future__ import annotations

import numpy as np

from service.search.belief import Belief
from service.search.graph import Bools, Floats, Range
from service.search.places import Places

#: At most so many combinations of answers are followed for the probes in flight, the likeliest ones.
FUTURES = 48


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
