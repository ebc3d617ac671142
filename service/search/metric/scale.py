"""Numbers as the search compares them: larger is worse, by ratio where all are positive, and no run is far off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from service.search.graph import Floats
from service.search.metric.samples import Better, Interval, Question, Sample

#: Runs further beyond the ends than so many standard deviations count as if they were there. Chosen by simulation.
BEYOND = 3.0
#: The noise is at least about this share of the difference of the ends: numbers that never varied may do so yet.
FLOOR = 0.1
#: Decimal places of scaled numbers.
ROUNDED = 12
#: Deviations from an end's median that are needed to know how far off a run is.
ENOUGH = 8
#: Of a standard deviation to the median of absolute deviations, for a normal law.
OF_MEDIAN = 1.4826


@dataclass(frozen=True)
class Scale:
    """`log`: effects are ratios. `unit`: what numbers are divided by where they are not, so that no square of one is
    beyond what a float holds."""

    log: bool
    better: Better
    unit: float = 1.0

    @classmethod
    def of(cls, values: Floats, better: Better) -> Scale:
        """Errors: ValueError for a number that is not finite."""
        if not np.isfinite(values).all():
            wrong = values[~np.isfinite(values)]
            raise ValueError(f"a metric is no finite number: {', '.join(f'{value:g}' for value in wrong[:5])}")
        largest = float(np.abs(values).max(initial=0.0))
        unit = float(2.0 ** (np.frexp(largest)[1] - 1)) if largest > 0 else 1.0
        return cls(True, better) if (values > 0).all() else cls(False, better, unit)

    @property
    def sign(self) -> float:
        return -1.0 if self.better == "higher" else 1.0

    def into(self, values: Floats) -> Floats:
        """What differs by less than a part in a million millions is the same: it is nothing but rounding."""
        found = np.log(values) if self.log else np.asarray(values, dtype=float) / self.unit
        snapped: Floats = self.sign * np.round(found, ROUNDED)
        return snapped

    def level(self, scaled: float) -> float:
        """Back in the metric's unit."""
        return float(np.exp(np.clip(self.sign * scaled, -700, 700))) if self.log else self.sign * scaled * self.unit

    def levels(self, scaled: Interval) -> Interval:
        ends = sorted((self.level(scaled.low), self.level(scaled.high)))
        return Interval(self.level(scaled.estimate), ends[0], ends[1])

    def effect(self, gap: float, good: float, relative: bool) -> float:
        """How much worse `gap` is, from the good level `good` on, both as scaled: a share of it, or in the unit."""
        if self.log and relative:
            return self.sign * float(np.expm1(np.clip(self.sign * gap, -700, 700)))
        found = self.sign * (self.level(good + gap) - self.level(good))
        return found / abs(self.level(good)) if relative else found

    def effects(self, gap: Interval, good: float, relative: bool) -> Interval:
        return Interval(*(self.effect(value, good, relative) for value in (gap.estimate, gap.low, gap.high)))

    def gap(self, effect: float, good: float, relative: bool) -> float:
        """The other way round: infinite where it takes more than all there is."""
        level = self.level(good)
        changed = level + self.sign * (effect * abs(level) if relative else effect)
        if not self.log:
            return self.sign * (changed - level) / self.unit
        return self.sign * float(np.log(changed / level)) if changed > 0 else float("inf")


@dataclass(frozen=True, eq=False)
class Scaled:
    """`values`: of each sample, clipped."""

    scale: Scale
    values: Floats


def scaled(samples: Sequence[Sample], question: Question, goods: Collection[str], bad: str) -> Scaled:
    raw = np.array([one.value for one in samples], dtype=float)
    scale = Scale.of(raw, question.better)
    values = scale.into(raw)
    cells: dict[tuple[str, bool], list[int]] = {}
    for index, one in enumerate(samples):
        if one.sha == bad or one.sha in goods:
            cells.setdefault((one.bench, one.sha == bad), []).append(index)
    return Scaled(scale, _clipped(samples, values, {key: values[found] for key, found in cells.items()}))


def spread(groups: Collection[Floats]) -> float:
    """The standard deviation within groups, by the median, so that a few runs far off do not matter; 0 where runs are
    too few to say."""
    off = [
        np.abs(values - np.median(values)) * np.sqrt(len(values) / (len(values) - 1))
        for values in groups
        if len(values) >= 3
    ]
    if sum(len(one) for one in off) < ENOUGH:
        return 0.0
    joined = np.concatenate(off)
    by_median = OF_MEDIAN * float(np.median(joined))
    # More than half of the runs say the very same where numbers are coarse.
    return by_median if by_median > 0 else float(np.sqrt(np.mean(joined**2)))


def _clipped(samples: Sequence[Sample], values: Floats, ends: dict[tuple[str, bool], Floats]) -> Floats:
    noise = spread(list(ends.values()))
    low, high = values.copy(), values.copy()
    for bench in {bench for bench, _ in ends}:
        middles = [float(np.median(found)) for (of, _), found in ends.items() if of == bench]
        if len(middles) < 2:
            continue
        # Where the ends never vary, a run far off is no less odd.
        reach = BEYOND * max(noise, FLOOR * (max(middles) - min(middles)))
        if reach > 0:
            mine = np.array([one.bench == bench for one in samples])
            low[mine], high[mine] = min(middles) - reach, max(middles) + reach
    clipped: Floats = np.clip(values, low, high)
    return clipped
