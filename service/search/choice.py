"""Which commits to probe now, which probes became worthless, and which will likely be wanted next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from service.search.candidates import candidates, skipped
from service.search.evidence import Evidence
from service.search.graph import Bools, Floats, Ints, Range, mass_below

Prior = Mapping[str, float]
Cost = Mapping[str, float]


def next_probes(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    in_flight: Sequence[str] = (),
    width: int = 1,
    cost: Cost | None = None,
) -> tuple[str, ...]:
    """The commits to start now so that at most `width` are in flight; fewer when no more are worth it."""
    left = candidates(range_, evidence)
    if left.sum() <= 1 or len(in_flight) >= width:
        return ()
    inner, indexes = range_.restrict(left)
    untestable = skipped(range_, evidence)[indexes]
    weights = _weights(inner, prior)
    flying = [place for sha in in_flight if (place := inner.find(sha)) is not None]
    chosen: list[int] = []
    while len(in_flight) + len(chosen) < width:
        best = _best(inner, weights, untestable, flying + chosen, cost, plain=prior is None and width == 1)
        if best is None:
            break
        chosen.append(best)
    return tuple(inner.shas[place] for place in chosen)


def redundant(range_: Range, evidence: Evidence, in_flight: Sequence[str]) -> tuple[str, ...]:
    """Probes in flight whose answer is already known, so that they can be cancelled."""
    left = candidates(range_, evidence)
    worthless = []
    for sha in in_flight:
        index = range_.find(sha)
        below = left & range_.ancestors(index) if index is not None else left & False
        if not below.any() or below.sum() == left.sum():
            worthless.append(sha)
    return tuple(worthless)


def likely_next(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    in_flight: Sequence[str] = (),
    n: int = 4,
    cost: Cost | None = None,
) -> tuple[tuple[str, float], ...]:
    """The commits most likely wanted after the answers in flight, each with the probability that it will be."""
    found: dict[str, float] = {}
    waiting = list(in_flight) or list(next_probes(range_, evidence, prior, cost=cost))
    _imagine(range_, evidence, prior, cost, waiting, 1.0, n, found)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple((sha, chance) for sha, chance in ranked if sha not in waiting)[:n]


def _imagine(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None,
    cost: Cost | None,
    waiting: list[str],
    chance: float,
    n: int,
    found: dict[str, float],
) -> None:
    """Follow both answers of each waiting probe, most likely first, and note what would be chosen then."""
    futures = [(chance, evidence, waiting)]
    while futures and len(found) < 2 * n:
        futures.sort(key=lambda future: future[0])
        chance, seen, asked = futures.pop()
        if not asked:
            asked = list(next_probes(range_, seen, prior, cost=cost))
            for sha in asked:
                found[sha] = found.get(sha, 0.0) + chance
        if asked and chance > 1e-3:
            futures += _answers(range_, seen, prior, asked, chance)


def _answers(
    range_: Range, seen: Evidence, prior: Prior | None, asked: list[str], chance: float
) -> list[tuple[float, Evidence, list[str]]]:
    sha, rest = asked[0], asked[1:]
    left = candidates(range_, seen)
    index = range_.find(sha)
    if index is None:
        return [(chance, seen, rest)]
    weights = _weights(range_, prior) * left
    bad = float(weights[range_.ancestors(index)].sum() / weights.sum())
    outcomes = [(chance * bad, seen.plus(sha, "bad"), rest), (chance * (1 - bad), seen.plus(sha, "good"), rest)]
    return [outcome for outcome in outcomes if outcome[0] > 0]


def midpoint(n: int) -> int:
    """How many of n candidates in a line lie at or below the one that `git bisect` would test.

    Source: do_find_bisection and approx_halfway of git's bisect.c: the first, oldest first, that is close enough to
    half; the very first one is never asked, hence the odd case of three.
    """
    slack = max(n // 1024, 2) - 1
    lowest = -((slack - n) // 2)
    return max(lowest, 2) if n > 2 else 1


def _weights(range_: Range, prior: Prior | None) -> Floats:
    if prior is None:
        return np.full(len(range_), 1.0 / len(range_))
    weights = np.array([max(prior.get(sha, 0.0), 0.0) for sha in range_.shas])
    weights += max(weights.sum(), 1e-9) * 1e-6 / len(weights)
    scaled: Floats = weights / weights.sum()
    return scaled


def _best(
    range_: Range,
    weights: Floats,
    untestable: Bools,
    flying: list[int],
    cost: Cost | None,
    plain: bool,
) -> int | None:
    """The candidate whose probe tells most per second, given the probes in flight; None when none tells anything."""
    n = len(range_)
    if plain and range_.is_line and cost is None and not untestable.any() and not flying:
        return midpoint(n) - 1
    gain = _gain(range_, weights, flying) * _testable(untestable)
    gain[-1] = 0.0
    gain[untestable] = 0.0
    gain[flying] = 0.0
    if cost is not None:
        gain = gain / np.array([max(cost.get(sha, 1.0), 1e-9) for sha in range_.shas])
    best = int(np.argmax(np.round(gain, 12)))
    return best if gain[best] > 1e-12 else None


def _gain(range_: Range, weights: Floats, flying: list[int]) -> Floats:
    """Expected bits from a probe at each candidate on top of those from the probes in flight."""
    cells = _cells(range_, flying)
    total = np.zeros(len(range_))
    for cell in np.unique(cells):
        inside = np.where(cells == cell, weights, 0.0)
        mass = inside.sum()
        if mass > 0:
            total += mass * entropy(np.clip(mass_below(range_, inside) / mass, 0.0, 1.0))
    return total


def _cells(range_: Range, flying: list[int]) -> Ints:
    """Candidates by which answers of the probes in flight they would give."""
    if not flying:
        return np.zeros(len(range_), dtype=np.int64)
    names: dict[int, int] = {}
    return np.array([names.setdefault(mask, len(names)) for mask in range_.above(flying)], dtype=np.int64)


def entropy(p: Floats) -> Floats:
    """Bits of a yes or no question whose yes has probability p."""
    inside = np.clip(p, 1e-15, 1 - 1e-15)
    bits: Floats = -(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside))
    bits[(p <= 1e-12) | (p >= 1 - 1e-12)] = 0.0
    return bits


def _testable(untestable: Bools) -> Floats:
    """Chance that a commit can be tested, when skips come in stretches: low beside one, the lower the longer it is."""
    chance = np.ones(len(untestable))
    places = np.flatnonzero(untestable)
    if len(places):
        apart = np.abs(np.arange(len(untestable))[:, None] - places[None, :]).min(axis=1)
        chance = apart / (apart + 1.0 + len(places))
    return chance
