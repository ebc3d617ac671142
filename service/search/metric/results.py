"""What samples of a number amount to: whether the ends differ, and which commit made the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from service.search.conclusion import Conclusion
from service.search.metric.samples import Interval, Sample

#: One commit made it worse; several did; it got worse little by little; it varies more and is not worse on the whole.
Shape = Literal["step", "steps", "ramp", "spread"]


@dataclass(frozen=True)
class Ends:
    """What is known of the ends. `differ`: in the level, or in the spread alone (`shape`), at the stated level.
    `unsure`: both want more runs. Else the bisection is refused: `alike`, when the budget is used up; `reversed`, when
    the bad end is better beyond doubt; `small`, when the difference is certainly less than the threshold.

    `effect`: how much worse the bad end is: a share of the good end's level (0.12 is 12 %) when `relative`, else in the
    metric's unit. `noise`: one run's standard deviation, in the same measure. `detectable`: the least effect that could
    have been seen with these runs. `expected`: runs that the search will need, in the mean.
    """

    verdict: Literal["differ", "unsure", "alike", "reversed", "small"]
    why: str
    effect: Interval | None = None
    noise: float | None = None
    relative: bool = True
    shape: Literal["step", "spread"] = "step"
    detectable: float | None = None
    expected: float | None = None


@dataclass(frozen=True)
class Steady:
    """Readings as if no bench had changed: one that drifted goes on under another name, its next *epoch*. `kept`: those
    that count, in order of time. `dropped`: by index of the reading, why it does not count. `again`: by bench, the end
    to measure once more, since its last reading looks off. `epochs`: by bench, the name that it goes by now."""

    kept: tuple[Sample, ...]
    dropped: Mapping[int, str] = field(default_factory=dict)
    again: Mapping[str, str] = field(default_factory=dict)
    epochs: Mapping[str, str] = field(default_factory=dict)

    def epoch_of(self, bench: str) -> str:
        return self.epochs.get(bench, bench)


@dataclass(frozen=True)
class Step:
    """A place where the number got worse: at one of `shas`, in topological order; one, when it is known. `size`: as
    `Ends.effect`. `largest`: the chance that it is the largest one."""

    shas: tuple[str, ...]
    size: Interval
    largest: float


@dataclass(frozen=True)
class Location:
    """Where the number got worse, as far as it is known.

    `conclusion`: Found when one commit holds the largest step at the stated confidence. `levels`: of each commit that
    was measured, its level in the metric's unit, as it would be on the first bench. `bad`: the chance that a commit
    that was measured is at or behind the (largest) step. `steps`: the largest first, all that are above the threshold.
    """

    conclusion: Conclusion
    shape: Shape = "step"
    levels: Mapping[str, Interval] = field(default_factory=dict)
    bad: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
