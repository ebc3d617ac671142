"""What the evidence amounts to.

- `Found`: one candidate is left, or one holds the stated confidence.
- `Suspects`: only commits that cannot be tested separate good from bad.
- `Contradiction`: no candidate explains all verdicts; the pair that shows it is named.
- `Searching`: none of these yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.candidates import candidates, conflict
from service.search.choice import Prior, next_probes
from service.search.evidence import Evidence, Observation
from service.search.graph import Range


@dataclass(frozen=True)
class Found:
    """`confidence` is the posterior probability of the answer, 1.0 when every verdict is taken at its word."""

    sha: str
    confidence: float
    candidates_left: int = 1
    expected_probes: float = 0.0


@dataclass(frozen=True)
class Suspects:
    """`shas` in topological order, parents first."""

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


def conclusion(range_: Range, evidence: Evidence, prior: Prior | None = None) -> Conclusion:
    clash = conflict(range_, evidence)
    if clash is not None:
        return Contradiction(clash.observations, clash.why)
    left = np.flatnonzero(candidates(range_, evidence)).tolist()
    shas = tuple(range_.shas[index] for index in left)
    if len(shas) == 1:
        return Found(shas[0], 1.0)
    if not next_probes(range_, evidence, prior):
        odds = tuple(1.0 / len(shas) for _ in shas)
        return Suspects(shas, "only commits that could not be tested are left to test", odds, len(shas))
    return Searching(len(shas), mean_probes(len(shas)))


def mean_probes(n: int) -> float:
    """Mean depth of a balanced decision tree with n leaves: what plain bisection needs for n candidates."""
    depth = (n - 1).bit_length()
    return depth + 1 - float(2**depth) / n
