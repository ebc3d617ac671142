"""Numbers of a metric in words, the same in reports and in pictures. What is open or unknown is left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

#: From here on digits of an integer are not all written.
LONGEST = 10_000_000


class Estimate(Protocol):
    """An estimate and its 95 % interval, of the application or as the API tells it."""

    @property
    def estimate(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def number(value: float) -> str:
    """Four digits, or all of an integer's."""
    return f"{value:.0f}" if 1000 <= abs(value) < LONGEST else f"{value:.4g}"


def amount(value: float, unit: str = "") -> str:
    """Like "512 tok/s"."""
    return f"{number(value)} {unit}".rstrip()


def level(found: Estimate | None, unit: str = "") -> str:
    """Like "512 (498 to 523) tok/s"; empty when it is not known."""
    if found is None or found.estimate is None or not math.isfinite(found.estimate):
        return ""
    return " ".join(filter(None, (number(found.estimate), _interval(found, number), unit)))


def size(found: Estimate, relative: bool, unit: str = "") -> str:
    """Of a step, like "12 % (9 to 15 %) worse"."""
    if found.estimate is None or not math.isfinite(found.estimate):
        return "worse"
    if not relative:
        return f"{level(found, unit)} worse"
    return " ".join(filter(None, (f"{percent(found.estimate)} %", _interval(found, percent, " %"), "worse")))


def percent(share: float) -> str:
    return f"{100 * share:.3g}"


def quality(unit: str, better: str) -> str:
    """Like "tok/s, higher is better"."""
    return ", ".join(filter(None, (unit, f"{better} is better")))


def _interval(found: Estimate, shown: Callable[[float], str], after: str = "") -> str:
    low, high = found.low, found.high
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"({shown(low)} to {shown(high)}{after})"
