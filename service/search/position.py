"""Where a search stands: the belief, the places that may be probed, and what each is worth asking for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.search.belief import Belief, Prior, believe
from service.search.candidates import skipped
from service.search.evidence import Evidence
from service.search.graph import DENSE, Bools, Floats, Range
from service.search.information import GOOD_END, Places, places
from service.search.noise import Noise

#: Seconds that a probe is expected to take, by SHA.
Cost = Mapping[str, float]
#: A probe that tells less than this many bits is not worth a machine.
WORTHLESS = 1e-3
#: A flaky search gives odds instead of an answer after so many runs for each doubling of the range.
PATIENCE = 16


@dataclass(frozen=True, eq=False)
class Position:
    """`worth` multiplies the bits of a probe at each place: the chance that it can be tested, over its seconds."""

    range_: Range
    evidence: Evidence
    belief: Belief
    spots: Places
    worth: Floats

    def sha(self, place: int) -> str:
        index = int(self.spots.indexes[place])
        return self.range_.goods[0] if index == GOOD_END else self.range_.shas[index]

    def below(self, sha: str) -> Bools:
        """Candidates at or below a commit, none for a good end."""
        index = self.range_.find(sha)
        return np.zeros(len(self.range_), dtype=bool) if index is None else self.range_.ancestors(index)


def settled(belief: Belief, confidence: float) -> bool:
    """Nothing is left to ask: one candidate left, one that holds the confidence, or none that explains the evidence."""
    if belief.exact:
        return int(np.count_nonzero(belief.weights)) <= 1
    return not belief.possible or float(belief.weights.max()) >= confidence


def exhausted(range_: Range, evidence: Evidence) -> bool:
    runs = sum(tally.judged for tally in evidence.tallies.values())
    return runs >= PATIENCE * max(len(range_) - 1, 1).bit_length()


def position(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None,
    cost: Cost | None,
    noise: Noise | None,
    confidence: float,
) -> Position | None:
    """None when nothing is left to ask."""
    belief = believe(range_, evidence, prior, noise)
    if settled(belief, confidence) or (noise is not None and exhausted(range_, evidence)):
        return None
    untestable = skipped(range_, evidence)
    if belief.exact and not range_.is_line and len(range_) > DENSE:
        keep = belief.weights > 0
        range_, indexes = range_.restrict(keep)
        belief = Belief(belief.weights[indexes], belief.bad_if_good[indexes], belief.bad_if_bad[indexes])
        untestable = untestable[indexes]
    tested = [index for sha in evidence.tallies if (index := range_.find(sha)) is not None]
    spots = places(range_, belief, tested)
    return Position(range_, evidence, belief, spots, _worth(range_, spots, untestable, cost, belief.exact))


def _worth(range_: Range, spots: Places, untestable: Bools, cost: Cost | None, exact: bool) -> Floats:
    ends = spots.indexes == GOOD_END
    worth: Floats = np.append(testable(untestable)[spots.indexes[:-1]], float(bool(range_.goods)))
    if exact:
        worth[ends | (spots.indexes == len(range_) - 1)] = 0.0
    if cost is None:
        return worth
    shas = [range_.shas[index] for index in spots.indexes[:-1].tolist()]
    seconds = [max(cost.get(sha, 1.0), 1e-9) for sha in (*shas, *range_.goods[:1])]
    worth /= np.array(seconds if range_.goods else [*seconds, 1.0])
    return worth


def testable(untestable: Bools) -> Floats:
    """Chance that each commit can be tested. What cannot be built mostly lies in stretches: next to a skipped commit
    the chance is low, and it rises with the distance, the slower the more commits were skipped."""
    places_ = np.flatnonzero(untestable)
    if not len(places_):
        return np.ones(len(untestable))
    everywhere = np.arange(len(untestable))
    after = np.searchsorted(places_, everywhere).clip(0, len(places_) - 1)
    before = (after - 1).clip(0)
    apart = np.minimum(np.abs(places_[after] - everywhere), np.abs(places_[before] - everywhere))
    chance: Floats = apart / (apart + 1.0 + len(places_))
    return chance
