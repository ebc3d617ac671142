"""What a run should do next, as a pure function of what it knows: the ends first, then the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.domain.bisection import Purpose
from service.domain.evidence import Verdict
from service.local.asked import Judged, Terms, Want
from service.local.wrong_ends import WrongEnds, wrong_ends
from service.search import (
    UNKNOWN,
    Contradiction,
    Evidence,
    Found,
    Noise,
    Observation,
    Range,
    Searching,
    Suspects,
    conclusion,
    known,
    next_probes,
    redundant,
)
from service.search.conclusion import NOTHING_TELLS

#: So often an end of a flaky failure is tried before it is taken to be other than it is said to be.
END_TRIALS = 8
#: What `git bisect` itself would test, between good commits and a bad one.
Halfway = Callable[[Sequence[str], str], str]
_EXPECTED = {Purpose.BAD_END: Verdict.BAD, Purpose.GOOD_END: Verdict.GOOD}


@dataclass(frozen=True)
class Task:
    """What stays the same. `goods`: the ends that are older, of which `bases` are merge bases; `range_` ends with the
    newer one. `halfway`: None where the history is a line, of which the search knows git's choice by itself."""

    range_: Range
    goods: tuple[str, ...]
    width: int = 1
    flaky: bool = False
    confidence: float = 0.95
    terms: Terms = Terms()
    bases: tuple[str, ...] = ()
    halfway: Halfway | None = None

    @property
    def bad(self) -> str:
        return self.range_.shas[-1]

    @property
    def noise(self) -> Noise | None:
        return UNKNOWN if self.flaky else None


@dataclass(frozen=True)
class Step:
    """`wanted`: to be started now. `worthless`: commits whose probes in flight need not end. `over`: there is nothing
    left to do but to tell it."""

    wanted: tuple[Want, ...] = ()
    worthless: tuple[str, ...] = ()
    over: Found | Suspects | Contradiction | WrongEnds | None = None
    left: int | None = None
    expected: float = 0.0


def step(task: Task, judged: Sequence[Judged], flying: Sequence[Want]) -> Step:
    ends = [Want(task.bad, Purpose.BAD_END), *(Want(sha, Purpose.GOOD_END) for sha in task.goods)]
    missing = _missing(task, ends, judged, flying)
    waiting = [end for end in ends if end in flying]
    if not missing and not waiting:
        problem = wrong_ends(ends, judged, task.terms, task.bases)
        return Step(over=problem) if problem is not None else _search(task, judged, flying)
    if _doubtful(task, judged):
        # Nothing is begun that stands on an end which is not as it is said to be.
        return Step(wanted=tuple(missing[: max(task.width - len(flying), 0)]))
    now = tuple(missing[: max(task.width - len(flying), 0)])
    return Step(wanted=(*now, *_meanwhile(task, ends, judged, [*flying, *now])))


def evidence_of(task: Task, judged: Sequence[Judged]) -> Evidence:
    trials: Counter[str] = Counter()
    found = []
    for one in judged:
        trials[one.seen.sha] += 1
        found.append(Observation(one.seen.sha, one.counts_as(task.terms).value, trials[one.seen.sha]))
    return Evidence(tuple(found))


def _missing(task: Task, ends: Sequence[Want], judged: Sequence[Judged], flying: Sequence[Want]) -> list[Want]:
    """One trial is enough; of a flaky failure, as many as it takes to see the end as it is said to be."""
    found = []
    for end in ends:
        trials = _trials(task, end, judged)
        seen = _EXPECTED[end.purpose] in trials or Verdict.SKIP in trials
        if end not in flying and (not trials or (task.flaky and not seen and len(trials) < END_TRIALS)):
            found.append((len(trials), end))
    return [end for _, end in sorted(found, key=lambda pair: pair[0])]


def _trials(task: Task, end: Want, judged: Sequence[Judged]) -> list[Verdict]:
    return [one.counts_as(task.terms) for one in judged if one.seen.sha == end.sha and one.seen.purpose is end.purpose]


def _doubtful(task: Task, judged: Sequence[Judged]) -> bool:
    return any(
        one.counts_as(task.terms) is not _EXPECTED[one.seen.purpose]
        for one in judged
        if one.seen.purpose is not Purpose.SEARCH
    )


def _meanwhile(task: Task, ends: Sequence[Want], judged: Sequence[Judged], busy: Sequence[Want]) -> tuple[Want, ...]:
    """What comes first should the ends turn out as they are said to be: nobody waits for a place that is free."""
    if len(busy) >= task.width:
        return ()
    known = {one.seen.sha for one in judged}
    taken = [Observation(end.sha, _EXPECTED[end.purpose].value) for end in ends if end.sha not in known]
    evidence = Evidence((*evidence_of(task, judged), *taken))
    searching = [want.sha for want in busy if want.purpose is Purpose.SEARCH]
    room = task.width - len(busy) + len(searching)
    new = next_probes(task.range_, evidence, None, searching, room, None, task.noise, task.confidence)
    return tuple(Want(sha, Purpose.SEARCH) for sha in new)


def _search(task: Task, judged: Sequence[Judged], flying: Sequence[Want]) -> Step:
    evidence = evidence_of(task, judged)
    said = conclusion(task.range_, evidence, None, task.noise, task.confidence)
    match said:
        case Found(sha=sha) if not task.flaky and "bad" not in [seen.verdict for seen in evidence if seen.sha == sha]:
            # All others are excluded, and yet nobody has seen it fail.
            wanted = () if any(want.sha == sha for want in flying) else (Want(sha, Purpose.SEARCH),)
            tried = any(seen.sha == sha for seen in evidence)
            return Step(over=said) if tried else Step(wanted, left=1, expected=1.0)
        case Suspects() if flying:
            return Step(left=len(said.shas))
        case Found() | Suspects() | Contradiction():
            return Step(over=said)
        case Searching(candidates_left=left, expected_probes=expected):
            return _go_on(task, evidence, [want.sha for want in flying], left, expected)


def _go_on(task: Task, evidence: Evidence, flying: Sequence[str], left: int, expected: float) -> Step:
    worthless = redundant(task.range_, evidence, flying, None, task.noise, task.confidence)
    kept = [sha for sha in flying if sha not in worthless]
    new: tuple[str, ...]
    if task.halfway is not None and task.width == 1 and not kept and not task.flaky and not _skipped(evidence):
        goods = [*task.goods, *(seen.sha for seen in evidence if seen.verdict == "good")]
        bads = [seen.sha for seen in evidence if seen.verdict == "bad"]
        new = (task.halfway(goods, _lowest(task.range_, bads)),)
    else:
        new = next_probes(task.range_, evidence, None, kept, task.width, None, task.noise, task.confidence)
    if not new and not flying:
        return Step(over=Suspects(known(task.range_, evidence, None, task.noise, task.confidence), NOTHING_TELLS))
    return Step(tuple(Want(sha, Purpose.SEARCH) for sha in new), tuple(worthless), None, left, expected)


def _skipped(evidence: Evidence) -> bool:
    return any(seen.verdict == "skip" for seen in evidence)


def _lowest(range_: Range, bads: Sequence[str]) -> str:
    """One at a time each bad commit is an ancestor of those before it, and so stands first in the order."""
    return min(bads, key=lambda sha: range_.find(sha) or 0)


def named(at: Step) -> tuple[str, ...]:
    """The commits that the end of a run speaks of."""
    match at.over:
        case Found(sha=sha):
            return (sha,)
        case Suspects(shas=shas):
            return shas
        case Contradiction(evidence=seen):
            return tuple(dict.fromkeys(one.sha for one in seen))
    return ()
