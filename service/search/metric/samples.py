"""What was measured, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Sample:
    """One run's number. `bench`: what it was measured on; numbers of two benches may differ by a constant factor, so
    both ends are measured on each."""

    sha: str
    value: float
    bench: str = ""


@dataclass(frozen=True)
class Reading:
    """A sample where it stands in time. `end`: the one that it measures, empty for a commit between."""

    sample: Sample
    end: Literal["good", "bad", ""] = ""


@dataclass(frozen=True)
class Question:
    """`threshold`: the least worsening that counts, None for whatever can be told apart; a share of the good end's
    level when `relative`, else in the metric's unit. `runs`: of each end at most, on the first bench. `confidence`: of
    the answer, and that the ends differ."""

    better: Better
    threshold: float | None = None
    relative: bool = True
    runs: int = 30
    confidence: float = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate, and where the truth lies with 95 %."""

    estimate: float
    low: float
    high: float
