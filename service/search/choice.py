"""Which commits to probe now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.search.belief import Belief, Prior, believe
from service.search.candidates import candidates
from service.search.evidence import Evidence
from service.search.graph import Floats, Range
from service.search.information import after, bits_left, gain, start
from service.search.noise import Noise
from service.search.position import WORTHLESS, Cost, Position, position, settled
from service.search.worst import bounded

#: How often the places of a set are moved one by one to where they tell more, given the others.
ROUNDS = 4


def next_probes(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    in_flight: Sequence[str] = (),
    width: int = 1,
    cost: Cost | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
) -> tuple[str, ...]:
    """The commits to start now so that at most `width` are in flight; fewer when no more are worth it.

    With `noise` a commit that was tried before may be named again, for one more trial, and so may the ends.
    """
    room = width - len(in_flight)
    if room <= 0:
        return ()
    if range_.is_line and prior is None and width == 1 and cost is None and noise is None and _unskipped(evidence):
        return _plain_line(range_, evidence)
    at = position(range_, evidence, prior, cost, noise, confidence, in_flight)
    if at is None:
        return ()
    if width == 1 and at.belief.exact and prior is not None:
        at = bounded(range_, evidence, at)
    futures = at.futures(in_flight)
    chosen = _greedy(at, futures, room)
    if len(chosen) > 1:
        chosen = _moved(at, futures, max(chosen, _spread(at, room), key=lambda some: _total(at, futures, some)))
    return tuple(at.sha(place) for place in chosen)


def redundant(
    range_: Range,
    evidence: Evidence,
    in_flight: Sequence[str],
    prior: Prior | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
) -> tuple[str, ...]:
    """Probes in flight that can tell nothing any more, so that they can be cancelled."""
    belief = believe(range_, evidence, prior, noise)
    if settled(belief, noise, confidence):
        return tuple(in_flight)
    return tuple(sha for sha in in_flight if _tells(range_, belief, sha) < (1e-9 if belief.exact else WORTHLESS))


def _tells(range_: Range, belief: Belief, sha: str) -> float:
    """Bits of one more probe of this commit."""
    index = range_.find(sha)
    below = np.zeros(len(range_), dtype=bool) if index is None else range_.ancestors(index)
    futures = after(start(belief), belief, below)
    return bits_left(start(belief)) - bits_left(futures)


def midpoint(n: int) -> int:
    """How many of n candidates in a line lie at or below the one that `git bisect` would test.

    Source: do_find_bisection and approx_halfway of git's bisect.c: the first, oldest first, that is close enough to
    half; the very first one is never asked, hence the odd case of three.
    """
    slack = max(n // 1024, 2) - 1
    lowest = -((slack - n) // 2)
    return max(lowest, 2) if n > 2 else 1


def _unskipped(evidence: Evidence) -> bool:
    return not any(tally.skip for tally in evidence.tallies.values())


def _plain_line(range_: Range, evidence: Evidence) -> tuple[str, ...]:
    left = np.flatnonzero(candidates(range_, evidence))
    return (range_.shas[left[midpoint(len(left)) - 1]],) if len(left) > 1 else ()


def _greedy(at: Position, futures: Floats, room: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(room):
        best = _best(at, futures)
        if best is None:
            break
        chosen.append(best)
        futures = at.after(futures, best)
    return chosen


def _best(at: Position, futures: Floats) -> int | None:
    """The place that tells most per second; the oldest among equals."""
    bits = gain(at.spots, at.belief, futures)
    value = np.where(bits >= (1e-9 if at.belief.exact else WORTHLESS), bits * at.worth, 0.0)
    best = int(np.argmax(value >= value.max() * (1 - 1e-9)))
    return best if value[best] > 0 else None


def _spread(at: Position, room: int) -> list[int]:
    """Places that cut the belief into equal shares: the best set on a line when nothing is in flight."""
    mass = at.spots.mass(at.belief.weights)
    mass[at.worth <= 0] = np.inf
    shares = [(share + 1) / (room + 1) for share in range(room)]
    return list(dict.fromkeys(int(np.argmin(np.abs(mass - share))) for share in shares))


def _total(at: Position, futures: Floats, chosen: Sequence[int]) -> float:
    """Bits per second of a set, each place counted on top of those before it."""
    total = 0.0
    for place in chosen:
        total += float(gain(at.spots, at.belief, futures)[place] * at.worth[place])
        futures = at.after(futures, place)
    return total


def _moved(at: Position, futures: Floats, chosen: list[int]) -> list[int]:
    for _ in range(ROUNDS):
        before = list(chosen)
        for turn in range(len(chosen)):
            others = futures
            for place in chosen[:turn] + chosen[turn + 1 :]:
                others = at.after(others, place)
            value = gain(at.spots, at.belief, others) * at.worth
            best = int(np.argmax(value))
            if value[best] > value[chosen[turn]] * (1 + 1e-9):
                chosen[turn] = best
        if chosen == before:
            break
    return chosen
