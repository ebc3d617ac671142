"""The numbers of a bisection: which runs count, on what they were measured, and what they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from service.domain.amounts import amount
from service.domain.bisection import Bisection, Probe
from service.domain.evidence import Outcome, Verdict
from service.domain.metric import Better, Measurement, Metric
from service.search.graph import Range
from service.search.metric import (
    Ends,
    Location,
    Question,
    Reading,
    Sample,
    Steady,
    compare_ends,
    known,
    locate,
    steady,
)

#: From this chance on a commit is said to be bad, and good from what is left.
SURE = Question.confidence
#: Which end a commit is; "" for one between them.
End = Literal["good", "bad", ""]
#: What is computed at each step, and in every report, is remembered.
REMEMBERED = 128


@dataclass(frozen=True)
class Numbers:
    """`candidates`: how many commits are searched. `runs`: those that count, in order of time; `unit`: of all of them,
    empty when nobody said. `skipped`: commits that cannot be measured."""

    metric: Metric
    question: Question
    good_shas: tuple[str, ...]
    bad_sha: str
    candidates: int | None = None
    runs: tuple[Probe, ...] = ()
    unit: str = ""
    skipped: frozenset[str] = frozenset()

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(Reading(self._sample(run), self.end(run.sha)) for run in self.runs)

    def _sample(self, run: Probe) -> Sample:
        return Sample(run.sha, value_of(run), bench_of(run))

    def end(self, sha: str) -> End:
        return "bad" if sha == self.bad_sha else "good" if sha in self.good_shas else ""

    @property
    def steady(self) -> Steady:
        return _steady(self.readings)

    @property
    def ends(self) -> Ends:
        """By what was measured on one bench, the one that measured most."""
        kept = self.steady.kept
        bench = Counter(one.bench for one in kept).most_common(1)[0][0] if kept else ""
        mine = [one for one in kept if one.bench == bench]
        sides = (tuple(one for one in mine if self.end(one.sha) == end) for end in ("good", "bad"))
        return _compared(*sides, self.question, self.candidates)

    @property
    def differ(self) -> bool:
        """Whether the ends were told apart: what is measured of them later takes that back no more."""
        return self.ends.verdict == "differ" or any(not self.end(run.sha) for run in self.runs)

    def range(self, between: Range) -> Range:
        """With the good ends, which are measured as well."""
        return _with_goods(between, self.good_shas)

    def location(self, between: Range) -> Location:
        return _located(self.range(between), self.steady.kept, self.question, self.skipped)

    def known(self, between: Range) -> tuple[str, ...]:
        """The commits that may be it, as far as it is known now."""
        return known(self.range(between), self.steady.kept, self.question)

    @cached_property
    def dropped(self) -> Mapping[str, str]:
        """By probe, why its number does not count."""
        return {self.runs[index].id: why for index, why in self.steady.dropped.items()}


@lru_cache(maxsize=REMEMBERED)
def _with_goods(between: Range, goods: tuple[str, ...]) -> Range:
    return replace(between, goods=goods)


@lru_cache(maxsize=REMEMBERED)
def _steady(readings: tuple[Reading, ...]) -> Steady:
    return steady(readings)


@lru_cache(maxsize=REMEMBERED)
def _compared(good: tuple[Sample, ...], bad: tuple[Sample, ...], question: Question, candidates: int | None) -> Ends:
    return compare_ends(good, bad, question, commits=candidates)


@lru_cache(maxsize=REMEMBERED)
def _located(range_: Range, samples: tuple[Sample, ...], question: Question, skipped: frozenset[str]) -> Location:
    return locate(range_, samples, question, skipped=skipped)


def numbers(bisection: Bisection, runs: Iterable[Probe]) -> Numbers | None:
    """`runs`: those that went well. None for a failure that is no number."""
    metric = bisection.request.metric
    if metric is None:
        return None
    counted = [run for run in runs if run.outcome is not None and number(run.outcome) is not None]
    counted.sort(key=lambda run: (run.finished_at or run.planned_at, run.number))
    unit = next((found for run in counted if (found := unit_of(run.outcome))), metric.unit)
    fit = tuple(run for run in counted if unit_of(run.outcome) in ("", unit))
    return Numbers(
        metric=metric,
        question=_question(bisection, metric),
        good_shas=bisection.good_shas,
        bad_sha=bisection.bad_sha or "",
        candidates=bisection.candidates,
        runs=fit,
        unit=unit,
    )


def _question(bisection: Bisection, metric: Metric) -> Question:
    threshold = metric.threshold
    return Question(
        better="higher" if metric.better is Better.HIGHER else "lower",
        threshold=threshold.value if threshold is not None else None,
        relative=threshold.relative if threshold is not None else True,
        runs=bisection.request.measuring.runs,
    )


def decisive(outcome: Outcome | None) -> Measurement | None:
    """Of the metric that decides."""
    return outcome.measurements[0] if outcome is not None and outcome.measurements else None


def number(outcome: Outcome | None) -> float | None:
    found = decisive(outcome)
    return found.value if found is not None else None


def value_of(run: Probe) -> float:
    """Of a run that counts."""
    value = number(run.outcome)
    assert value is not None, f"{run.id} counts, and has no number"
    return value


def unit_of(outcome: Outcome | None) -> str:
    found = decisive(outcome)
    return found.unit if found is not None else ""


def bench_of(run: Probe) -> str:
    """The node, with the GPUs that the run had: what two runs must share to be compared as they are."""
    cards = run.outcome.environment.get("gpu_indexes", "") if run.outcome is not None else ""
    return f"{run.node or ''} GPU {cards}" if cards else run.node or ""


def cards_of(runs: Iterable[Probe], node: str) -> tuple[int, ...]:
    """The GPUs that the last run on this node had; none where nothing is known of them."""
    told = [
        run.outcome.environment.get("gpu_indexes", "") for run in runs if run.outcome is not None and run.node == node
    ]
    last = next((cards for cards in reversed(told) if cards), "")
    return tuple(int(index) for index in last.split(",") if index.strip().isdigit())


def marks_of(run: Probe) -> tuple[str, ...]:
    """What speaks against a number, though it counts."""
    if run.outcome is None:
        return ()
    facts = run.outcome.environment
    # Pictures show what stands before the colon alone.
    names = {"throttled": "throttled", "gpu_held_by": "card held by others"}
    return tuple(f"{words}: {facts[name]}" for name, words in names.items() if facts.get(name))


@dataclass(frozen=True)
class Said:
    """A verdict by the numbers; None as long as more runs are needed to tell."""

    verdict: Verdict | None
    reason: str


@dataclass(frozen=True)
class Verdicts:
    """By the numbers, of each run that has one. `range_`: None before the search."""

    numbers: Numbers
    range_: Range | None = None

    def said(self, run: Probe) -> Said:
        found = decisive(run.outcome)
        if found is None or found.value is None:
            return Said(Verdict.SKIP, f"nothing was measured: {found.problem if found else 'no number was found'}")
        told = f"measured {amount(found.value, found.unit)}"
        if found.unit and self.numbers.unit and found.unit != self.numbers.unit:
            return Said(Verdict.SKIP, f"{told}, but the other runs are in {self.numbers.unit}")
        told = "; ".join((told, *marks_of(run)))
        if why := self.numbers.dropped.get(run.id):
            return Said(None, f"{told}; dropped, since {why}")
        return Said(self._verdict(run), told)

    def _verdict(self, run: Probe) -> Verdict | None:
        end = self.numbers.end(run.sha)
        if end:
            return (Verdict.BAD if end == "bad" else Verdict.GOOD) if self.numbers.differ else None
        if self.range_ is None:
            return run.verdict
        chance = self.numbers.location(self.range_).bad.get(run.sha)
        if chance is None or 1 - SURE < chance < SURE:
            return None
        return Verdict.BAD if chance >= SURE else Verdict.GOOD
