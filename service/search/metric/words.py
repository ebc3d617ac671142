"""How samples and effects are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: More numbers than these are told by their quartiles.
LISTED = 8


def told(values: Sequence[float]) -> str:
    if not values:
        return "not measured"
    if len(values) <= LISTED:
        return ", ".join(f"{value:g}" for value in values)
    low, middle, high = np.quantile(np.array(values, dtype=float), (0.25, 0.5, 0.75))
    return f"{middle:.5g} (median of {len(values)} runs, half of them from {low:.5g} to {high:.5g})"


def share(value: float) -> str:
    return f"{100 * value:.3g} %"


def short(sha: str) -> str:
    return sha[:10]
