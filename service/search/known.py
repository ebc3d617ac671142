"""What is known of the first bad commit at any moment, for a search that has to stop there."""

from __future__ import annotations

import numpy as np

from service.search.belief import Prior, believe
from service.search.evidence import Evidence
from service.search.graph import Range
from service.search.noise import Noise


def known(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
) -> tuple[str, ...]:
    """The candidates that no verdict excludes, parents first. When verdicts may err: the fewest that hold the first bad
    commit with this confidence, the most suspect first."""
    weights = believe(range_, evidence, prior, noise).weights
    if noise is None:
        return tuple(range_.shas[index] for index in np.flatnonzero(weights).tolist())
    order = np.argsort(-weights, kind="stable")
    count = int(np.searchsorted(np.cumsum(weights[order]), confidence)) + 1
    return tuple(range_.shas[index] for index in order[:count].tolist())
