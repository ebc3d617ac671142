"""Benches that drift: an end that is measured again now and then shows it.

A new reading of an end is held against the earlier ones of the same bench by Student's t for one more number. One that
is off asks for another; when that is off too, to the same side, the bench is another one from the first of them on, its
next epoch, and what was measured since the last reading that fitted counts for nothing: nobody knows when it changed. A
bench may also drift so slowly that no reading is off: then the readings of the ends have a slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from service.search.graph import Floats
from service.search.metric.results import Steady
from service.search.metric.samples import Reading

#: A reading is off when so little chance is left for it; one that was asked for to make sure, for this one.
OFF, OFF_AGAIN = 0.001, 0.01
#: Readings of the ends have a slope when this little chance is left for it: it is looked at after every one.
SLOPE = 0.00005
#: Readings of ends, and of the very end, before one more can be off.
KNOWN, KNOWN_HERE = 4, 2
#: Readings of ends before they can have a slope.
SLOPING = 10
#: The noise is at least this share of the level's distance between the ends: some readings may agree by chance.
FLOOR = 0.05


@dataclass
class _Bench:
    """One epoch. `checks`: the indexes of readings of ends that fit; `between`: of commits since the last one of them;
    `off`: of readings that may not fit."""

    name: str
    epoch: int = 1
    checks: list[int] = field(default_factory=list)
    between: list[int] = field(default_factory=list)
    off: list[int] = field(default_factory=list)

    @property
    def current(self) -> str:
        return self.name if self.epoch == 1 else f"{self.name}#{self.epoch}"


def steady(readings: Sequence[Reading]) -> Steady:
    """`readings` in order of time, of all benches. Errors: ValueError for a number that is not finite."""
    values = _values(readings)
    benches: dict[str, _Bench] = {}
    names = [""] * len(readings)
    dropped: dict[int, str] = {}
    for index, reading in enumerate(readings):
        bench = benches.setdefault(reading.sample.bench, _Bench(reading.sample.bench))
        if reading.end:
            _check(bench, index, readings, values, names, dropped)
        else:
            bench.between.append(index)
            names[index] = bench.current
    kept = tuple(replace(one.sample, bench=names[at]) for at, one in enumerate(readings) if at not in dropped)
    again = {name: readings[bench.off[0]].sample.sha for name, bench in benches.items() if bench.off}
    return Steady(kept, dropped, again, {name: bench.current for name, bench in benches.items()})


def _values(readings: Sequence[Reading]) -> Floats:
    """Ratios matter where all numbers are positive."""
    values = np.array([one.sample.value for one in readings], dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a metric is no finite number")
    return np.log(values) if (values > 0).all() else values


def _check(
    bench: _Bench,
    index: int,
    readings: Sequence[Reading],
    values: Floats,
    names: list[str],
    dropped: dict[int, str],
) -> None:
    """Puts a reading of an end where it belongs."""
    names[index] = bench.current
    side = _off(bench.checks, index, readings, values, OFF_AGAIN if bench.off else OFF)
    if not bench.off and side:
        bench.off.append(index)
        return
    if bench.off and side and side == _off(bench.checks, bench.off[0], readings, values, OFF):
        _begin(bench, [*bench.off, index], _jumped(bench, index, readings), names, dropped)
        return
    bench.checks.append(index)
    bench.off, passed = [], bench.between
    bench.between = []
    if _slopes(bench.checks, readings, values):
        bench.between = passed
        recent = bench.checks[-2:]
        bench.checks = bench.checks[:-2]
        _begin(bench, recent, _slid(bench, recent, readings), names, dropped)


def _begin(bench: _Bench, checks: list[int], why: str, names: list[str], dropped: dict[int, str]) -> None:
    """The next epoch, with these readings of ends; what lies before them and after the last one that fitted goes, and
    what lies among them stays."""
    bench.epoch += 1
    for index in bench.between:
        if index < checks[0]:
            dropped[index] = why
        else:
            names[index] = bench.current
    for index in checks:
        names[index] = bench.current
    bench.checks, bench.between, bench.off = list(checks), [], []


def _off(checks: Sequence[int], index: int, readings: Sequence[Reading], values: Floats, chance: float) -> int:
    """1 when the reading is larger than the earlier ones of its end can explain, -1 when it is smaller, else 0."""
    from scipy.special import stdtr

    groups = _groups(checks, readings, values)
    mine = groups.get(readings[index].sample.sha)
    if mine is None or len(mine) < KNOWN_HERE or len(checks) < KNOWN:
        return 0
    freedom = sum(len(one) - 1 for one in groups.values())
    gap = float(values[index] - np.median(mine))
    error = _noise(groups) * float(np.sqrt(1 + 1 / len(mine)))
    if error == 0.0:
        return int(np.sign(gap)) if gap else 0
    return int(np.sign(gap)) if 2 * float(stdtr(freedom, -abs(gap) / error)) < chance else 0


def _groups(checks: Sequence[int], readings: Sequence[Reading], values: Floats) -> dict[str, Floats]:
    found: dict[str, list[float]] = {}
    for index in checks:
        found.setdefault(readings[index].sample.sha, []).append(float(values[index]))
    return {sha: np.array(some) for sha, some in found.items()}


def _noise(groups: dict[str, Floats]) -> float:
    """The standard deviation of a run. Readings that were off alone are not among them, so that they hide nothing."""
    freedom = sum(len(one) - 1 for one in groups.values())
    plain = float(np.sqrt(sum(float(((one - one.mean()) ** 2).sum()) for one in groups.values()) / max(freedom, 1)))
    apart = float(np.ptp([float(np.median(one)) for one in groups.values()]))
    return max(plain, FLOOR * apart)


def _slopes(checks: Sequence[int], readings: Sequence[Reading], values: Floats) -> bool:
    """The readings of both ends, each about its own mean, against their order: the test of Mann (1945) and Kendall, by
    rank, so that one far off does not matter."""
    if len(checks) < SLOPING:
        return False
    from scipy.special import ndtri

    groups = _groups(checks, readings, values)
    off = [float(values[at] - groups[readings[at].sample.sha].mean()) for at in checks]
    count = len(off)
    pairs = float(np.sign(np.subtract.outer(off, off))[np.tril_indices(count, -1)].sum())
    deviation = float(np.sqrt(count * (count - 1) * (2 * count + 5) / 18))
    return abs(pairs) > deviation * float(ndtri(1 - SLOPE / 2))


def _jumped(bench: _Bench, index: int, readings: Sequence[Reading]) -> str:
    first = readings[bench.off[0]].sample
    before = [readings[at].sample.value for at in bench.checks if readings[at].sample.sha == first.sha]
    end = "good" if readings[bench.off[0]].end == "good" else "bad"
    now = f"{first.value:g} and {readings[index].sample.value:g}" if readings[index].end == end else f"{first.value:g}"
    return (
        f"the bench{_named(bench.name)} changed meanwhile: the {end} end measures {now}, "
        f"before it was {np.median(before):g} (median of {len(before)})"
    )


def _slid(bench: _Bench, recent: Sequence[int], readings: Sequence[Reading]) -> str:
    last = readings[recent[-1]]
    first = next(readings[at].sample.value for at in bench.checks if readings[at].sample.sha == last.sample.sha)
    return (
        f"the bench{_named(bench.name)} drifts: the {last.end} end went little by little "
        f"from {first:g} to {last.sample.value:g}"
    )


def _named(name: str) -> str:
    return f" {name}" if name else ""
