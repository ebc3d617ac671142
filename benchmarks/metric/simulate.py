"""Searches simulated with the product's own functions: both ends first, then the commits that tell most."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.metric.histories import History, Random
from service.search import Found, Suspects
from service.search.metric import Question, Reading, Sample, compare_ends, locate, next_commit, steady

QUESTION = Question("lower")


@dataclass(frozen=True)
class Finished:
    """`ends`: the runs until they differed, or `refused` did. `runs`: those after that. `commits`: distinct ones."""

    ends: int
    runs: int
    commits: int
    found: int | None = None
    suspects: frozenset[int] = frozenset()
    why: str = ""
    refused: str = ""


def search(
    history: History,
    random: Random,
    question: Question = QUESTION,
    recheck: int = 0,
    confidence: float | None = None,
) -> Finished:
    """`recheck`: after so many runs of commits an end is measured again. `confidence`: of the answer, when the ends are
    compared at another one."""
    range_ = history.range_
    good, bad = range_.goods[0], range_.shas[-1]
    readings: list[Reading] = []

    def measure(sha: str) -> None:
        end = "good" if sha == good else "bad" if sha == bad else ""
        readings.append(Reading(Sample(sha, history.run(sha, random, len(readings))), end))

    while True:
        for sha in (bad, good) if len(readings) % 4 == 0 else (good, bad):
            measure(sha)
        sides = [[one.sample for one in readings if one.end == end] for end in ("good", "bad")]
        said = compare_ends(sides[0], sides[1], question)
        if said.verdict != "unsure":
            break
    ends = len(readings)
    if said.verdict != "differ":
        return Finished(ends, 0, 0, refused=said.verdict)
    since, question = 0, replace(question, confidence=confidence or question.confidence)
    while True:
        kept = steady(readings) if recheck else None
        samples = [one.sample for one in readings] if kept is None else list(kept.kept)
        if kept is not None and kept.again:
            measure(next(iter(kept.again.values())))
            continue
        if kept is not None and (lacking := _lacking(samples, kept.epoch_of(""), good, bad)):
            measure(lacking)
            continue
        sha = next_commit(range_, samples, question)
        # As the service does: after so many commits, and once more before the answer.
        if recheck and (since >= recheck or (sha is None and since)):
            last = next(one.end for one in reversed(readings) if one.end)
            measure(good if last == "bad" else bad)
            since = 0
            continue
        if sha is None:
            break
        measure(sha)
        since += 1
    said_ = locate(range_, samples, question).conclusion
    tried = {one.sample.sha for one in readings} - {good, bad}
    found = range_.find(said_.sha) if isinstance(said_, Found) else None
    suspects = frozenset(range_.find(sha) for sha in said_.shas) if isinstance(said_, Suspects) else frozenset()
    why = said_.why if isinstance(said_, Suspects) else ""
    return Finished(ends, len(readings) - ends, len(tried), found, suspects, why)


def _lacking(samples: list[Sample], bench: str, good: str, bad: str) -> str | None:
    """An end that was not measured twice yet in the bench's epoch."""
    mine = [one.sha for one in samples if one.bench == bench]
    return next((sha for sha in (good, bad) if mine.count(sha) < 2), None)
