"""A metric over the commits of a bisection."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from service.domain.evidence import Verdict
from service.domain.metric import Better
from service.doors.api.views.base import View


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: JSON has no infinity.
Finite = Annotated[float | None, BeforeValidator(_finite)]


class IntervalView(View):
    """An estimate and its 95 % interval; null where that is open."""

    estimate: Finite
    low: Finite
    high: Finite


class RunView(View):
    """One run's number."""

    probe: str
    value: Finite
    bench: str = Field(description="What it was measured on.")
    marks: tuple[str, ...] = Field(default=(), description="What may have changed it, such as a card that throttled.")
    dropped: str = Field(default="", description="Why it does not count; empty where it does.")


class PointView(View):
    """A commit that was measured."""

    sha: str
    subject: str
    position: int = Field(description="In topological order; 0 is the good end.")
    level: IntervalView | None = Field(description="Null as long as its runs say too little.")
    runs: tuple[RunView, ...]
    verdict: Verdict | None = Field(default=None, description="Null for none yet.")
    end: Literal["good", "bad"] | None = Field(default=None, description="Null for none of the ends.")


class SideView(View):
    """An end: the numbers of its runs that count, and its level."""

    values: tuple[Finite, ...]
    level: IntervalView | None


class StepView(View):
    """A place where the number got worse: at one of `shas`."""

    shas: tuple[str, ...]
    first: int = Field(description="The lowest position of these commits.")
    last: int = Field(description="The highest position of these commits.")
    size: IntervalView = Field(description="How much worse: a share of the good end's level, or in the unit.")
    relative: bool = Field(description="The size is a share: 0.12 is 12 %.")


class CurveView(View):
    """What was measured of the metric that decides."""

    name: str
    unit: str
    better: Better
    headline: str
    notes: tuple[str, ...]
    shape: Literal["step", "steps", "ramp", "spread"]
    candidates: int = Field(description="How many there are; the bad end has this `position`.")
    left: tuple[int, int] | None = Field(description="Positions where the first bad commit may still be; null: named.")
    points: tuple[PointView, ...] = Field(description="By position.")
    good: SideView
    bad: SideView
    steps: tuple[StepView, ...] = Field(description="The largest first.")
