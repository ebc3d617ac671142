"""How a list of suspects is shown where not all of them can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
#: So many are shown, and so many an answer names.
MOST = 10
MOST_NAMED = 100


@dataclass(frozen=True)
class Shown(Generic[T]):
    """`gap` stands between the two parts; empty where all are shown."""

    first: Sequence[T]
    gap: str
    last: Sequence[T]


def count(named: int, left: int | None) -> int:
    """How many there are. `left`: candidates of the bisection, which count where an answer names no more."""
    return max(named, left or 0) if named >= MOST_NAMED else named


def shown(named: Sequence[T], left: int | None, *, ranked: bool) -> Shown[T]:
    """`left`: as above. `ranked`: the most suspect ones come first, so that the last
    ones tell nothing; else both ends tell what is left."""
    more = count(len(named), left) - MOST
    if more <= 0:
        return Shown(named, "", ())
    if ranked:
        return Shown(named[:MOST], f"… and {more:,} that are less suspect", ())
    half = MOST // 2
    return Shown(named[:half], f"… and {more:,} between", named[-half:])
