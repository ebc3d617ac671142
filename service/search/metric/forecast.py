"""How many runs a search will take, and when it has taken too many."""

from __future__ import annotations

import numpy as np

#: Bits that a run tells are taken to be at least this much, or it is a search without end.
LEAST_BITS = 0.01
#: A search gives odds instead of an answer after so many times the runs that are expected, and some.
PATIENCE, SOME = 4.0, 40.0
#: And after so many in any case.
MOST = 1000.0


def expected_runs(commits: int, gap: float, noise: float, confidence: float) -> float:
    """By the information of a run: half a bit times log2(1 + signal) where the two levels are as likely as each other
    (Shannon's capacity, at most one bit). The bits needed are those of the place and of the confidence. `gap` and
    `noise` as scaled."""
    signal = (gap / noise) ** 2 / 4 if noise > 0 else float("inf")
    bits = min(0.5 * float(np.log2(1 + signal)), 1.0)
    needed = float(np.log2(max(commits, 2))) + float(np.log2(1 / (1 - confidence)))
    return needed / max(bits, LEAST_BITS)


def most_runs(commits: int, gap: float, noise: float, confidence: float) -> float:
    return min(PATIENCE * expected_runs(commits, gap, noise, confidence) + SOME, MOST)
