"""What the evidence amounts to.

- `Found`: one candidate is left or, when verdicts may err, one holds the stated confidence.
- `Suspects`: nothing that could be tested separates the candidates that are left, or it took too many runs.
- `Contradiction`: no candidate explains all verdicts; the observations that show it are named, two where two suffice.
- `Searching`: none of these yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.belief import Belief, Prior, believe
from service.search.candidates import conflict, skipped
from service.search.evidence import Evidence, Observation
from service.search.graph import Range
from service.search.information import bits_left, gain, start
from service.search.noise import Noise
from service.search.position import WORTHLESS, Position, exhausted, position


@dataclass(frozen=True)
class Found:
    """`confidence` is the probability that the answer is right, 1.0 when every verdict is taken at its word."""

    sha: str
    confidence: float
    candidates_left: int = 1
    expected_probes: float = 0.0


@dataclass(frozen=True)
class Suspects:
    """`shas` in topological order, parents first, or most suspect first when verdicts may err; `odds` are theirs."""

    shas: tuple[str, ...]
    why: str
    odds: tuple[float, ...] = ()
    candidates_left: int = 0
    expected_probes: float = 0.0


@dataclass(frozen=True)
class Contradiction:
    evidence: tuple[Observation, ...]
    why: str
    candidates_left: int = 0
    expected_probes: float = 0.0


@dataclass(frozen=True)
class Searching:
    """`expected_probes` is the mean number still to come, one at a time."""

    candidates_left: int
    expected_probes: float


Conclusion = Found | Suspects | Contradiction | Searching

UNTESTABLE = "only commits that could not be tested are left to test"
NOTHING_TELLS = "no commit that can be tested would tell the suspects apart"
TOO_MANY = "the failure is too flaky to name one commit in a reasonable number of runs"


def conclusion(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
) -> Conclusion:
    belief = believe(range_, evidence, prior, noise)
    if noise is None or not belief.possible:
        clash = conflict(range_, evidence.at_their_word if noise is not None and evidence.certain else evidence)
        if clash is not None:
            return Contradiction(clash.observations, clash.why)
    if noise is None:
        return _exact(range_, evidence, belief)
    top = int(np.argmax(belief.weights))
    stated = noise.stated(float(belief.weights[top]))
    if stated >= confidence:
        return Found(range_.shas[top], stated)
    return _undecided(range_, evidence, belief, position(range_, evidence, prior, None, noise, confidence), confidence)


def _exact(range_: Range, evidence: Evidence, belief: Belief) -> Conclusion:
    left = np.flatnonzero(belief.weights)
    shas = tuple(range_.shas[index] for index in left.tolist())
    if len(shas) == 1:
        return Found(shas[0], 1.0)
    # Every candidate but the last one tells something: the last is no ancestor of it.
    if skipped(range_, evidence)[left[:-1]].all() and _last_is_no_question(range_, belief, int(left[-1]), evidence):
        return Suspects(shas, UNTESTABLE, tuple(belief.weights[left].tolist()), len(shas))
    return Searching(len(shas), mean_probes(belief))


def _last_is_no_question(range_: Range, belief: Belief, last: int, evidence: Evidence) -> bool:
    untestable = skipped(range_, evidence)[last]
    return bool(untestable or not (belief.weights > 0)[~range_.ancestors(last)].any())


def _undecided(range_: Range, evidence: Evidence, belief: Belief, at: Position | None, confidence: float) -> Conclusion:
    order = np.argsort(-belief.weights, kind="stable")
    shares = belief.weights[order]
    count = int(np.searchsorted(np.cumsum(shares), confidence)) + 1
    bits = _best_bits(at)
    if bits >= WORTHLESS:
        return Searching(count, bits_left(start(belief)) / bits)
    shas = tuple(range_.shas[index] for index in order[:count].tolist())
    why = TOO_MANY if exhausted(range_, evidence) else NOTHING_TELLS
    return Suspects(shas, why, tuple(shares[:count].tolist()), count)


def _best_bits(at: Position | None) -> float:
    return 0.0 if at is None else float(gain(at.spots, at.belief, start(at.belief))[at.worth > 0].max(initial=0.0))


def mean_probes(belief: Belief) -> float:
    """Mean depth of a decision tree over the belief, one probe at a time: balanced, and shorter by what is known.

    Source: a balanced tree with n leaves has mean depth d + 1 - 2**d / n with d the logarithm rounded up; the bits by
    which the belief falls short of an even one are saved in full, as in Huffman coding.
    """
    n = int(np.count_nonzero(belief.weights))
    depth = (n - 1).bit_length()
    even = depth + 1 - float(2**depth) / n
    return max(1.0, even - (float(np.log2(n)) - bits_left(start(belief))))
