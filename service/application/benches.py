"""Which end a bench measures again, and when: a bench is a node with its cards, and its numbers move as it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from service.application.measure import Numbers
from service.domain.bisection import Bisection, Probe
from service.domain.lifecycle import ProbeState

#: On another bench than the first each end is measured so often before a commit of it counts.
ENDS_OF_A_BENCH = 2
#: So many runs of an end may fail one after another, once it was measured well.
FAILURES = 3


def fewer(bisection: Bisection, count: Mapping[str, int]) -> str:
    """The end that was measured less often; B A A B B A A B where there is one good end."""
    bad, goods = bisection.bad_sha or "", bisection.good_shas
    good = min(goods, key=lambda sha: count.get(sha, 0))
    each = sum(count.get(sha, 0) for sha in goods) / len(goods)
    if count.get(bad, 0) != each:
        return bad if count.get(bad, 0) < each else good
    return bad if count.get(bad, 0) % 2 == 0 else good


def end_due(bisection: Bisection, numbers: Numbers, node: str) -> str | None:
    """An end, when its last check was off, when too few were measured since the bench is what it is now, or when
    commits enough were since the last one."""
    every = bisection.request.measuring.recheck
    early = _unsettled(bisection, numbers, node)
    return early or (_other_end(bisection, numbers, node) if every and _since(numbers, node) >= every else None)


def last_check(bisection: Bisection, numbers: Numbers, node: str) -> str | None:
    """The end to measure before an answer is given: what was measured since the last one may be another machine's."""
    early = _unsettled(bisection, numbers, node)
    wanted = bisection.request.measuring.recheck and _since(numbers, node)
    return early or (_other_end(bisection, numbers, node) if wanted else None)


def _unsettled(bisection: Bisection, numbers: Numbers, node: str) -> str | None:
    mine = _of(numbers, node)
    if not mine:
        return bisection.bad_sha
    bench = numbers.readings[mine[-1]].sample.bench
    if (again := numbers.steady.again.get(bench)) is not None:
        return again
    epoch = numbers.steady.epoch_of(bench)
    count = Counter(sample.sha for sample in numbers.steady.kept if sample.bench == epoch)
    good = min(bisection.good_shas, key=lambda sha: count[sha])
    enough = min(count[bisection.bad_sha or ""], count[good]) >= ENDS_OF_A_BENCH
    return None if enough else fewer(bisection, count)


def _of(numbers: Numbers, node: str) -> list[int]:
    return [index for index, run in enumerate(numbers.runs) if run.node == node]


def _since(numbers: Numbers, node: str) -> int:
    """Commits that the node measured since it measured an end."""
    mine = _of(numbers, node)
    ends = [place for place, index in enumerate(mine) if numbers.end(numbers.runs[index].sha)]
    return len(mine) - 1 - (ends[-1] if ends else -1)


def _other_end(bisection: Bisection, numbers: Numbers, node: str) -> str | None:
    """They take turns."""
    ends = [end for index in _of(numbers, node) if (end := numbers.end(numbers.runs[index].sha))]
    return bisection.good_shas[0] if ends and ends[-1] == "bad" else bisection.bad_sha


def lost_end(numbers: Numbers, probes: Sequence[Probe]) -> Probe | None:
    """The last run of an end that cannot be measured any more, though it was."""
    counted = {run.id for run in numbers.runs}
    for sha in (numbers.bad_sha, *numbers.good_shas):
        over = [p for p in probes if p.sha == sha and p.state in (ProbeState.JUDGED, ProbeState.FAULTED)]
        failed = 0
        for probe in over:
            # A probe that is given up was tried on several nodes.
            failed = 0 if probe.id in counted else failed + (FAILURES if probe.state is ProbeState.FAULTED else 1)
        if failed >= FAILURES:
            return over[-1]
    return None
