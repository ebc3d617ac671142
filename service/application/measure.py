"""Verdicts on commits by a number: all runs of a commit together, compared with those of both ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from service.domain.bisection import Bisection, Probe
from service.domain.evidence import Judgement, Outcome, Verdict
from service.domain.metric import Metric
from service.search.metric import MOST, Ends, compare_ends, judge


@dataclass(frozen=True)
class Measured:
    """`samples`: by commit, in the order of its runs; `good`, `bad`: those of the ends."""

    metric: Metric
    samples: Mapping[str, tuple[float, ...]]
    good_shas: tuple[str, ...]
    bad_sha: str

    @property
    def good(self) -> tuple[float, ...]:
        return tuple(value for sha in self.good_shas for value in self.samples.get(sha, ()))

    @property
    def bad(self) -> tuple[float, ...]:
        return self.samples.get(self.bad_sha, ())

    @property
    def ends(self) -> Ends:
        return compare_ends(self.good, self.bad, self.metric.better.value)

    def plus(self, run: Probe) -> Measured:
        value = number(run.outcome) if run.outcome is not None else None
        more = () if value is None else (value,)
        return replace(self, samples={**self.samples, run.sha: (*self.samples.get(run.sha, ()), *more)})


def measured(bisection: Bisection, runs: Iterable[Probe]) -> Measured | None:
    """Of the runs that count; None for a failure that is no number."""
    metric = bisection.request.metric
    if metric is None:
        return None
    found = Measured(metric, {}, bisection.good_shas, bisection.bad_sha or "")
    for run in runs:
        found = found.plus(run)
    return found


def number(outcome: Outcome) -> float | None:
    """Of the metric that decides."""
    return outcome.measurements[0].value if outcome.measurements else None


def verdict(found: Measured, sha: str) -> Judgement | None:
    """None as long as more runs are needed to tell."""
    ends = found.ends
    mine = found.samples.get(sha, ())
    if ends.verdict != "differ" or not mine:
        return None
    how = f"measured {_shown(mine)}"
    if sha == found.bad_sha or sha in found.good_shas:
        return Judgement(Verdict.BAD if sha == found.bad_sha else Verdict.GOOD, how)
    how += f"; good end {_middle(found.good)}, bad end {_middle(found.bad)}"
    told = judge(mine, found.good, found.bad, found.metric.better.value)
    if told != "unsure":
        return Judgement(Verdict(told), how)
    return Judgement(Verdict.SKIP, f"{how}: cannot be told apart") if len(mine) >= MOST else None


def _middle(values: Sequence[float]) -> str:
    return f"{median(values):g} ({len(values)} runs)"


def _shown(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
