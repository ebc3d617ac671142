"""The evidence that one group of numbers is larger than another, that may be looked at after every run.

An e-value is what a bet against "both are the same" has become worth: its mean stays 1 when they are the same, so it
ever reaches 1/alpha with a chance of at most alpha, whenever one stops (Ville). The bet is that the difference is
drawn from normal laws of several widths, in units of the noise; the level and the noise are unknown, with the
right-Haar prior, for which the Bayes factor is an e-value (Perez-Ortiz, Lardy, de Heide and Grünwald, E-statistics,
group invariance and anytime-valid testing, 2024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.graph import Floats
from service.search.metric.scale import FLOOR

#: Standard deviations of the difference that is bet on, in units of the noise.
WIDTHS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Evidence:
    """E-values: that the second group is larger, and that it is smaller."""

    larger: float
    smaller: float


def evidence(first: Floats, second: Floats) -> Evidence:
    """Both groups hold at least one number."""
    # About one of them, or equal numbers would have means that differ in the last bit.
    first, second = first - first[0], second - first[0]
    gap = float(second.mean() - first.mean())
    within = float(((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum())
    return by_sums(len(first), len(second), gap, within)


def by_sums(first: int, second: int, gap: float, within: float) -> Evidence:
    """From the numbers' count, the difference of their means, and the squares about both."""
    from scipy.special import stdtr

    size, freedom = first * second / (first + second), first + second - 1
    within += (FLOOR * gap) ** 2
    if within == 0.0:
        return Evidence(1.0, 1.0)
    widths = np.array(WIDTHS) ** 2
    left = within + gap**2 * size / (1 + widths * size)
    factor = freedom / 2 * np.log((within + gap**2 * size) / left) - 0.5 * np.log1p(widths * size)
    middle = gap * size / (size + 1 / widths)
    error = np.sqrt(left / freedom / (size + 1 / widths))
    worth = np.exp(np.minimum(factor, 500.0))
    above = stdtr(freedom, middle / error)
    return Evidence(float(np.mean(2 * worth * above)), float(np.mean(2 * worth * (1 - above))))
