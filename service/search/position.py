"""Where a search stands: the belief, the places that may be probed, and what each is worth asking for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.search.belief import Belief, Prior, believe
from service.search.candidates import skipped
from service.search.evidence import Evidence
from service.search.graph import Bools, Floats, Range
from service.search.information import after, start
from service.search.noise import Noise
from service.search.places import GOOD_END, Places, view

#: Seconds that a probe is expected to take, by SHA.
Cost = Mapping[str, float]
#: Bits are weighed against seconds to this power. Less than 1, as the probes after this one will take time as well:
#: docs/search.md has the figures.
HASTE = 0.6
#: A probe that tells less than this many bits is not worth a machine.
WORTHLESS = 1e-3
#: A flaky search gives odds instead of an answer after so many runs for each doubling of the range.
PATIENCE = 16


@dataclass(frozen=True, eq=False)
class Position:
    """`worth` multiplies the bits of a probe at each place: the chance that it can be tested, less for more seconds.

    `range_` holds the candidates that are left when verdicts are exact; `belief` is over them, or over classes of them
    with their `sizes`.
    """

    range_: Range
    belief: Belief
    spots: Places
    sizes: Floats
    worth: Floats

    def sha(self, place: int) -> str:
        index = int(self.spots.indexes[place])
        return self.range_.goods[0] if index == GOOD_END else self.range_.shas[index]

    def after(self, futures: Floats, place: int) -> Floats:
        return after(futures, self.belief, self.spots.below(place, len(self.belief.weights)))

    def futures(self, in_flight: Sequence[str]) -> Floats:
        """What the probes in flight may show. Those about commits that are no candidates any more show nothing."""
        futures = start(self.belief)
        for sha in in_flight:
            index = self.range_.find(sha)
            place = self.spots.at(GOOD_END if index is None else index)
            if place is not None:
                futures = self.after(futures, place)
        return futures


def settled(belief: Belief, noise: Noise | None, confidence: float) -> bool:
    """Nothing is left to ask: one candidate left, one that holds the confidence, or none that explains the evidence."""
    if noise is None:
        return int(np.count_nonzero(belief.weights)) <= 1
    return not belief.possible or noise.stated(float(belief.weights.max())) >= confidence


def exhausted(range_: Range, evidence: Evidence) -> bool:
    runs = sum(tally.judged + tally.skip for tally in evidence.tallies.values())
    return runs >= PATIENCE * max(len(range_) - 1, 1).bit_length()


def position(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    cost: Cost | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
    in_flight: Sequence[str] = (),
) -> Position | None:
    """None when nothing is left to ask."""
    belief = believe(range_, evidence, prior, noise)
    if settled(belief, noise, confidence) or (noise is not None and exhausted(range_, evidence)):
        return None
    worth = _worth(range_, evidence, cost, belief.exact)
    left = belief.weights > 0
    if belief.exact and not left.all():
        range_, indexes = range_.restrict(left)
        worth = worth[indexes]
        belief = Belief(belief.weights[indexes], belief.bad_if_good[indexes], belief.bad_if_bad[indexes])
    flying, tested = (
        [index for sha in dict.fromkeys(shas) if (index := range_.find(sha)) is not None]
        for shas in (in_flight, evidence.tallies)
    )
    seen = view(range_, belief, flying, tested, worth)
    worth = np.append(worth[seen.spots.indexes[:-1]], _worth_of_good_end(range_, evidence, cost, belief.exact))
    return Position(range_, seen.belief, seen.spots, seen.sizes, worth)


def _worth(range_: Range, evidence: Evidence, cost: Cost | None, exact: bool) -> Floats:
    """By commit. With exact verdicts nobody asks for the bad end."""
    worth = testable(skipped(range_, evidence))
    if cost is not None:
        worth /= np.array([_price(cost, sha) for sha in range_.shas])
    if exact:
        worth[-1] = 0.0
    worth[[index for sha in evidence.certain if (index := range_.find(sha)) is not None]] = 0.0
    return worth


def _worth_of_good_end(range_: Range, evidence: Evidence, cost: Cost | None, exact: bool) -> float:
    if exact or not range_.goods or range_.goods[0] in evidence.certain:
        return 0.0
    return 1.0 / _price(cost or {}, range_.goods[0])


def _price(cost: Cost, sha: str) -> float:
    return float(max(cost.get(sha, 1.0), 1e-9) ** HASTE)


def testable(untestable: Bools) -> Floats:
    """Chance that each commit can be tested. What cannot be built mostly lies in stretches: next to a skipped commit
    the chance is low, and it rises with the distance, the slower the more commits were skipped."""
    found = np.flatnonzero(untestable)
    if not len(found):
        return np.ones(len(untestable))
    everywhere = np.arange(len(untestable))
    later = np.searchsorted(found, everywhere).clip(0, len(found) - 1)
    earlier = (later - 1).clip(0)
    apart = np.minimum(np.abs(found[later] - everywhere), np.abs(found[earlier] - everywhere))
    chance: Floats = apart / (apart + 1.0 + len(found))
    return chance
