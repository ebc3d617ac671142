"""What to measure next for a number that got worse: the ends until they differ, then the commit that tells most, and an
end again now and then. A bench (a node with its cards) measures one run at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.application import telling, wording
from service.application.forecast import Forecast, cost, worth_building
from service.application.keys import Scope
from service.application.measure import Numbers, number, unit_of, value_of
from service.application.moves import Step, Wanted, live_of
from service.domain.bisection import Answer, Bisection, Probe, Problem, Purpose
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.search import Found, Searching, Suspects
from service.search.metric import next_commit

#: On another bench than the first each end is measured so often before a commit of it counts.
ENDS_OF_A_BENCH = 2
#: So many commits are thought ahead, for builders that have nothing to do.
LOOK_AHEAD = 3


@dataclass(frozen=True)
class Measured:
    """What a number is measured by. `nodes`: those that may measure it, the one that has measured most first; empty
    before anything was measured."""

    numbers: Numbers
    nodes: tuple[str, ...] = ()


def step(bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast, measured: Measured) -> Step:
    """Only for a bisection that checks its ends, or searches."""
    if bisection.state is BisectionState.CHECKING_ENDS:
        return _check_ends(bisection, probes, scope, forecast, measured)
    return _search(bisection, probes, scope, forecast, measured)


def _check_ends(
    bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast, measured: Measured
) -> Step:
    ended = _hopeless(probes, measured.numbers) or _told_apart(bisection, measured.numbers)
    live = live_of(probes)
    if ended is not None:
        return replace(ended, worthless=live)
    if live or (measured.numbers.runs and not measured.nodes):
        return Step(ahead=_ahead(bisection, scope, forecast, measured, [probe.sha for probe in live]))
    sha = _fewer(bisection, Counter(run.sha for run in measured.numbers.runs))
    wanted = Wanted(sha, _purpose(measured.numbers, sha), measured.nodes[0] if measured.nodes else None)
    return Step(wanted=(wanted,), ahead=_ahead(bisection, scope, forecast, measured, [sha]))


def _hopeless(probes: Sequence[Probe], numbers: Numbers) -> Step | None:
    """An end that cannot be measured."""
    ends = [probe for probe in probes if probe.purpose is not Purpose.SEARCH and numbers.end(probe.sha)]
    faulted = next((probe for probe in ends if probe.state is ProbeState.FAULTED), None)
    if faulted is not None:
        return Step(state=BisectionState.FAILED, problem=wording.end_faulted(faulted))
    skipped = next((probe for probe in ends if probe.verdict is Verdict.SKIP), None)
    if skipped is None:
        return None
    return Step(state=BisectionState.REFUSED, problem=_unmeasurable(skipped, numbers))


def _unmeasurable(end: Probe, numbers: Numbers) -> Problem:
    unit = unit_of(end.outcome)
    if number(end.outcome) is not None and unit and numbers.unit and unit != numbers.unit:
        return telling.units_differ(end, unit, numbers.unit)
    return wording.end_untestable(end)


def _told_apart(bisection: Bisection, numbers: Numbers) -> Step | None:
    """None as long as the ends want more runs."""
    if not numbers.runs:
        return None
    if (problem := _no_share(numbers)) is not None:
        return Step(state=BisectionState.REFUSED, problem=problem)
    ends = numbers.ends
    if ends.verdict == "differ":
        return Step(state=BisectionState.SEARCHING)
    if ends.verdict == "unsure":
        return None
    return Step(state=BisectionState.REFUSED, problem=telling.ends_not_worse(ends, numbers.metric, numbers.bad_sha))


def _no_share(numbers: Numbers) -> Problem | None:
    """A threshold of so many per cent has no meaning where the good end's number is not above zero."""
    if not numbers.question.relative or numbers.question.threshold is None:
        return None
    below = [run for run in numbers.runs if numbers.end(run.sha) == "good" and value_of(run) <= 0.0]
    return telling.no_share_of(below[0], value_of(below[0]), numbers.unit) if below else None


def _fewer(bisection: Bisection, count: Counter[str]) -> str:
    """The end that was measured less often; B A A B B A A B where there is one good end."""
    bad, goods = bisection.bad_sha or "", bisection.good_shas
    good = min(goods, key=lambda sha: count[sha])
    each = sum(count[sha] for sha in goods) / len(goods)
    if count[bad] != each:
        return bad if count[bad] < each else good
    return bad if count[bad] % 2 == 0 else good


def _purpose(numbers: Numbers, sha: str) -> Purpose:
    return {"good": Purpose.GOOD_END, "bad": Purpose.BAD_END}.get(numbers.end(sha), Purpose.SEARCH)


def _search(
    bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast, measured: Measured
) -> Step:
    live, numbers = live_of(probes), measured.numbers
    location = numbers.location(scope.range)
    match location.conclusion:
        case Found(sha=sha, confidence=confidence, candidates_left=left):
            answer = Answer((sha,), telling.why_measured(sha, location, numbers), confidence)
            return Step(BisectionState.CONFIRMING, (), live, answer, None, left, 0.0)
        case Suspects(shas=shas, why=why):
            answer = Answer(shas, why)
            return Step(BisectionState.SUSPECTS, (), live, answer, None, len(shas), 0.0)
        case Searching(candidates_left=left, expected_probes=expected):
            going = _go_on(bisection, probes, scope, forecast, measured)
            return replace(going, candidates_left=left, expected_probes=expected)
    raise ValueError(f"samples cannot contradict each other: {location.conclusion}")


def _go_on(bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast, measured: Measured) -> Step:
    live = live_of(probes)
    taken = {probe.target or probe.node for probe in live}
    # A probe that any node may take leaves none idle for certain.
    idle = [node for node in measured.nodes if node not in taken] if None not in taken else []
    idle = idle[: max(bisection.request.width - len(live), 0)]
    asked = [probe.sha for probe in live]
    wanted: list[Wanted] = []
    for node in idle:
        sha = _of_bench(bisection, node, scope, forecast, measured, asked)
        if sha is not None:
            wanted.append(Wanted(sha, _purpose(measured.numbers, sha), node))
            asked.append(sha)
    return Step(wanted=tuple(wanted), ahead=_ahead(bisection, scope, forecast, measured, asked))


def _of_bench(
    bisection: Bisection, node: str, scope: Scope, forecast: Forecast, measured: Measured, asked: Sequence[str]
) -> str | None:
    """What this node measures next."""
    return _end_of_bench(bisection, node, measured.numbers) or _next(bisection, scope, forecast, measured, asked)


def _end_of_bench(bisection: Bisection, node: str, numbers: Numbers) -> str | None:
    """An end, when one is due: its last check was off, too few were measured since the bench is what it is now, or
    commits enough since the last one."""
    mine = [index for index, run in enumerate(numbers.runs) if run.node == node]
    if not mine:
        return bisection.bad_sha
    bench = numbers.readings[mine[-1]].sample.bench
    if (again := numbers.steady.again.get(bench)) is not None:
        return again
    epoch = numbers.steady.epoch_of(bench)
    count = Counter(sample.sha for sample in numbers.steady.kept if sample.bench == epoch)
    good = min(bisection.good_shas, key=lambda sha: count[sha])
    if min(count[bisection.bad_sha or ""], count[good]) < ENDS_OF_A_BENCH:
        return _fewer(bisection, count)
    return _recheck(bisection, [numbers.runs[index].sha for index in mine], numbers)


def _recheck(bisection: Bisection, measured: Sequence[str], numbers: Numbers) -> str | None:
    """`measured`: by this bench, in order of time. The ends take turns."""
    ends = [index for index, sha in enumerate(measured) if numbers.end(sha)]
    since = len(measured) - 1 - (ends[-1] if ends else -1)
    every = bisection.request.measuring.recheck
    if not every or since < every:
        return None
    return bisection.good_shas[0] if ends and numbers.end(measured[ends[-1]]) == "bad" else bisection.bad_sha


def _next(
    bisection: Bisection, scope: Scope, forecast: Forecast, measured: Measured, asked: Sequence[str]
) -> str | None:
    numbers = measured.numbers
    costs = cost(scope.keys, forecast, [*scope.range.shas, *bisection.good_shas]) if scope.keys else None
    return next_commit(
        numbers.range(scope.range),
        numbers.steady.kept,
        numbers.question,
        skipped=numbers.skipped,
        in_flight=tuple(asked),
        cost=costs,
    )


def _ahead(
    bisection: Bisection, scope: Scope, forecast: Forecast, measured: Measured, asked: Sequence[str]
) -> tuple[str, ...]:
    """The other ends first, then the commits that would be measured next."""
    forecast = forecast.beside([scope.keys[sha] for sha in asked]) if forecast.room else forecast
    if not forecast.room:
        return ()
    ends = [sha for sha in (bisection.bad_sha or "", *bisection.good_shas) if sha not in asked]
    likely: list[str] = []
    for _ in range(LOOK_AHEAD):
        sha = _next(bisection, scope, forecast, measured, (*asked, *likely))
        if sha is None:
            break
        likely.append(sha)
    chances = [(sha, 1.0) for sha in ends] + [(sha, 0.5 / (place + 1)) for place, sha in enumerate(likely)]
    return worth_building(chances, scope.keys, forecast)
