"""What to measure next for a number that got worse: the ends until they differ, then the commit that tells most, and an
end again now and then. A bench (a node with its cards) measures one run at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.application import benches, telling, wording
from service.application.forecast import Forecast, cost, worth_building
from service.application.keys import Scope
from service.application.measure import Numbers, number, unit_of, value_of
from service.application.moves import Step, Wanted, live_of, stopped
from service.domain.bisection import OF_ENDS, Answer, Bisection, Probe, Problem, Purpose
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.search import Found, Searching, Suspects
from service.search.metric import next_commit

#: So many commits are thought ahead, for builders that have nothing to do.
LOOK_AHEAD = 3


@dataclass(frozen=True)
class Measured:
    """What a number is measured by. `nodes`: those that may measure it, the first one's first; empty before anything
    was measured, and while none of them is there."""

    numbers: Numbers
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Situation:
    bisection: Bisection
    probes: Sequence[Probe]
    scope: Scope
    forecast: Forecast
    numbers: Numbers
    nodes: tuple[str, ...]

    @property
    def live(self) -> tuple[Probe, ...]:
        return live_of(self.probes)


def step(bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast, measured: Measured) -> Step:
    """Only for a bisection that checks its ends, or searches."""
    situation = _Situation(bisection, probes, scope, forecast, measured.numbers, measured.nodes)
    return _check_ends(situation) if bisection.state is BisectionState.CHECKING_ENDS else _search(situation)


def _check_ends(at: _Situation) -> Step:
    ended = _hopeless(at.probes, at.numbers) or _told_apart(at)
    if ended is not None:
        going = ended.state is BisectionState.SEARCHING
        return replace(ended, worthless=tuple(p for p in at.live if not (going and p.purpose is Purpose.ASKED)))
    if at.live or (at.numbers.runs and not at.nodes):
        return Step(ahead=_ahead(at, [probe.sha for probe in at.live]))
    sha = benches.fewer(at.bisection, Counter(run.sha for run in at.numbers.runs))
    wanted = Wanted(sha, _purpose(at.numbers, sha), at.nodes[0] if at.nodes else None)
    return Step(wanted=(wanted,), ahead=_ahead(at, [sha]))


def _hopeless(probes: Sequence[Probe], numbers: Numbers) -> Step | None:
    """An end that cannot be measured."""
    ends = [probe for probe in probes if probe.purpose in OF_ENDS and numbers.end(probe.sha)]
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


def _told_apart(at: _Situation) -> Step | None:
    """None as long as the ends want more runs."""
    numbers = at.numbers
    if not numbers.runs:
        return None
    if (problem := _no_share(numbers)) is not None:
        return Step(state=BisectionState.REFUSED, problem=problem)
    ends = numbers.ends
    if ends.verdict == "differ":
        return Step(state=BisectionState.SEARCHING)
    if ends.verdict != "unsure":
        return Step(state=BisectionState.REFUSED, problem=telling.ends_not_worse(ends, numbers.metric, numbers.bad_sha))
    # Where the bench drifts, what was measured before does not count, and there would be no end of it.
    count = Counter(numbers.end(run.sha) for run in numbers.runs)
    if min(count["good"], count["bad"]) < numbers.question.runs:
        return None
    return Step(state=BisectionState.REFUSED, problem=telling.ends_drift(numbers))


def _no_share(numbers: Numbers) -> Problem | None:
    """A threshold of so many per cent has no meaning where the good end's number is not above zero."""
    if not numbers.question.relative or numbers.question.threshold is None:
        return None
    below = [run for run in numbers.runs if numbers.end(run.sha) == "good" and value_of(run) <= 0.0]
    return telling.no_share_of(below[0], value_of(below[0]), numbers.unit) if below else None


def _purpose(numbers: Numbers, sha: str) -> Purpose:
    return {"good": Purpose.GOOD_END, "bad": Purpose.BAD_END}.get(numbers.end(sha), Purpose.SEARCH)


def _search(at: _Situation) -> Step:
    if (lost := benches.lost_end(at.numbers, at.probes)) is not None:
        return stopped(BisectionState.FAILED, telling.end_lost(lost, at.numbers), at.probes)
    location = at.numbers.location(at.scope.range)
    if not isinstance(location.conclusion, Searching) and any(probe.purpose is Purpose.ASKED for probe in at.live):
        # Somebody asked for one more run, and it may say otherwise.
        return Step()
    match location.conclusion:
        case Found(sha=sha, confidence=confidence, candidates_left=left):
            answer = Answer((sha,), telling.why_measured(sha, location, at.numbers), min(confidence, wording.SUREST))
            return _checked(at) or Step(BisectionState.CONFIRMING, (), at.live, answer, None, left, 0.0)
        case Suspects(shas=shas, why=why):
            answer = Answer(shas, why)
            return _checked(at) or Step(BisectionState.SUSPECTS, (), at.live, answer, None, len(shas), 0.0)
        case Searching(candidates_left=left, expected_probes=expected):
            return replace(_go_on(at), candidates_left=left, expected_probes=expected)
    raise ValueError(f"samples cannot contradict each other: {location.conclusion}")


def _checked(at: _Situation) -> Step | None:
    """None when every bench has shown since its last commit that it is what it was: then the answer may be given."""
    used = {run.node for run in at.numbers.runs}
    due = {node: benches.last_check(at.bisection, at.numbers, node) for node in at.nodes if node in used}
    due = {node: sha for node, sha in due.items() if sha is not None}
    if not due:
        return None
    idle = _idle(at)
    wanted = [Wanted(sha, _purpose(at.numbers, sha), node) for node, sha in due.items() if sha and node in idle]
    return Step(wanted=tuple(wanted))


def _idle(at: _Situation) -> list[str]:
    taken = {probe.target or probe.node for probe in at.live}
    if None in taken:
        # A probe that any node may take leaves none idle for certain.
        return []
    idle = [node for node in at.nodes if node not in taken]
    return idle[: max(at.bisection.request.width - len(at.live), 0)]


def _go_on(at: _Situation) -> Step:
    asked = [probe.sha for probe in at.live]
    wanted: list[Wanted] = []
    for node in _idle(at):
        sha = benches.end_due(at.bisection, at.numbers, node) or _next(at, asked)
        if sha is not None:
            wanted.append(Wanted(sha, _purpose(at.numbers, sha), node))
            asked.append(sha)
    return Step(wanted=tuple(wanted), ahead=_ahead(at, asked))


def _next(at: _Situation, asked: Sequence[str]) -> str | None:
    keys, numbers = at.scope.keys, at.numbers
    costs = cost(keys, at.forecast, [*at.scope.range.shas, *at.bisection.good_shas]) if keys else None
    return next_commit(
        numbers.range(at.scope.range),
        numbers.steady.kept,
        numbers.question,
        skipped=numbers.skipped,
        in_flight=tuple(asked),
        cost=costs,
    )


def _ahead(at: _Situation, asked: Sequence[str]) -> tuple[str, ...]:
    """The other ends first, then the commits that would be measured next."""
    forecast, keys = at.forecast, at.scope.keys
    forecast = forecast.beside([keys[sha] for sha in asked]) if forecast.room else forecast
    if not forecast.room:
        return ()
    ends = [sha for sha in (at.bisection.bad_sha or "", *at.bisection.good_shas) if sha not in asked]
    likely: list[str] = []
    for _ in range(LOOK_AHEAD):
        sha = _next(at, (*asked, *likely))
        if sha is None:
            break
        likely.append(sha)
    chances = [(sha, 1.0) for sha in ends] + [(sha, 0.5 / (place + 1)) for place, sha in enumerate(likely)]
    return worth_building(chances, keys, forecast)
