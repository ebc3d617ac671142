"""What a bisection should do next, as a pure function of what is known: the heart that `advance` carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.application import by_hand, measuring, wording
from service.application.forecast import Forecast, cost, worth_building
from service.application.keys import Scope
from service.application.measuring import Measured
from service.application.moves import Step, Wanted, live_of, stopped
from service.domain.bisection import Answer, Bisection, Probe, Problem, Purpose
from service.domain.errors import BadEnds
from service.domain.evidence import Verdict
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.search import (
    UNKNOWN,
    Contradiction,
    Evidence,
    Found,
    Noise,
    Observation,
    Searching,
    Suspects,
    conclusion,
    likely_next,
    next_probes,
    redundant,
)

#: So often an end of a flaky failure is tried before it is taken to be other than it is said to be.
END_TRIALS = 8
#: So few faulted probes say nothing yet of the nodes.
FEWEST_FAULTED = 3
#: So many futures of the search are looked at for wheels to build ahead.
LOOK_AHEAD = 8
_EXPECTED = {Purpose.BAD_END: Verdict.BAD, Purpose.GOOD_END: Verdict.GOOD}


NO_FORECAST = Forecast()


def step(
    bisection: Bisection,
    probes: Sequence[Probe],
    scope: Scope,
    forecast: Forecast = NO_FORECAST,
    measured: Measured | None = None,
) -> Step:
    """Only for a bisection that checks its ends, searches or confirms. `measured`: for a number that got worse."""
    if (problem := _unfit(probes, bisection.candidates_left)) is not None:
        return stopped(BisectionState.FAILED, problem, probes)
    if measured is not None and bisection.state is not BisectionState.CONFIRMING:
        return measuring.step(bisection, probes, scope, forecast, measured)
    probes = by_hand.with_said(bisection, probes)
    if bisection.state is BisectionState.CHECKING_ENDS:
        return _check_ends(bisection, probes, scope, forecast)
    if bisection.state is BisectionState.SEARCHING:
        return _search(bisection, probes, scope, forecast)
    return Step(state=BisectionState.FOUND)


def _unfit(probes: Sequence[Probe], left: int | None) -> Problem | None:
    """More than a third of the probes that are over ended with faults: such an environment can judge nothing."""
    over = [probe for probe in probes if probe.state in (ProbeState.JUDGED, ProbeState.FAULTED)]
    faulted = [probe for probe in over if probe.state is ProbeState.FAULTED]
    searched = any(probe.purpose is Purpose.SEARCH for probe in faulted)
    if searched and len(faulted) >= FEWEST_FAULTED and len(faulted) * 3 > len(over):
        return wording.unfit(faulted, len(over), left)
    return None


def evidence_of(bisection: Bisection, probes: Sequence[Probe]) -> Evidence:
    """Every verdict that was given, a fault's skip included. What somebody said of a commit is one that is certain."""
    said = by_hand.standing(bisection)
    ran = [Observation(p.sha, str(p.verdict), p.trial) for p in probes if p.verdict is not None and p.sha not in said]  # type: ignore[arg-type]
    words = [Observation(sha, str(one.verdict)) for sha, one in said.items()]  # type: ignore[arg-type]
    return Evidence((*ran, *words), frozenset(said))


def _check_ends(bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast) -> Step:
    """The bad end first: a request whose failure cannot be seen at all is the commonest mistake."""
    ends = [Wanted(bisection.bad_sha or "", Purpose.BAD_END)]
    ends += [Wanted(sha, Purpose.GOOD_END) for sha in bisection.good_shas]
    # After somebody spoke of an end, the search's own probes may still run.
    live = [p for p in live_of(probes) if p.purpose is not Purpose.SEARCH and by_hand.is_end(bisection, p.sha)]
    missing = [end for end in ends if _wants_a_trial(bisection, end, probes)]
    missing.sort(key=lambda end: sum((p.sha, p.purpose) == (end.sha, end.purpose) for p in probes))
    if missing:
        room = bisection.request.width - len(live)
        wanted = tuple(missing[: max(room, 0)])
        return Step(wanted=wanted, ahead=_ahead_of_search(bisection, wanted, scope, forecast))
    return Step(ahead=_ahead_of_search(bisection, (), scope, forecast)) if live else _ends_judged(bisection, probes)


def _ahead_of_search(
    bisection: Bisection, wanted: Sequence[Wanted], scope: Scope, forecast: Forecast
) -> tuple[str, ...]:
    """The other ends, and then what comes first should they turn out as they are said to be."""
    forecast = forecast.beside([scope.keys[want.sha] for want in wanted]) if forecast.room else forecast
    if not forecast.room:
        return ()
    bad, goods = bisection.bad_sha or "", bisection.good_shas
    taken = Evidence((Observation(bad, "bad"), *(Observation(sha, "good") for sha in goods)))
    now = {want.sha for want in wanted}
    ends = [(sha, 1.0) for sha in (bad, *goods) if sha not in now]
    costs = cost(scope.keys, forecast, scope.keys)
    prior, noise = scope.lead.prior, noise_of(bisection)
    first = next_probes(scope.range, taken, prior, cost=costs, width=bisection.request.width, noise=noise)
    later = likely_next(scope.range, taken, prior, in_flight=first, n=LOOK_AHEAD, cost=costs, noise=noise)
    return worth_building([*ends, *((sha, 0.99) for sha in first), *later], scope.keys, forecast)


def _wants_a_trial(bisection: Bisection, end: Wanted, probes: Sequence[Probe]) -> bool:
    """One is enough; of a flaky failure, as many as it takes to see the end as it is said to be, up to END_TRIALS."""
    trials = [p for p in probes if (p.sha, p.purpose) == (end.sha, end.purpose) and p.state is not ProbeState.CANCELLED]
    if not trials or not bisection.request.flaky:
        return not trials
    if any(by_hand.is_by_hand(probe) for probe in trials):
        return False
    settled = any(probe.verdict in (_EXPECTED[end.purpose], Verdict.SKIP) for probe in trials)
    return not settled and len(trials) < END_TRIALS and all(probe.verdict is not None for probe in trials)


def _ends_judged(bisection: Bisection, probes: Sequence[Probe]) -> Step:
    bad = _best(probes, bisection.bad_sha or "", Purpose.BAD_END)
    goods = [_best(probes, sha, Purpose.GOOD_END) for sha in bisection.good_shas]
    faulted = [probe for probe in (bad, *goods) if _gave_up(probe)]
    if faulted:
        return stopped(BisectionState.FAILED, wording.end_faulted(faulted[0]), probes)
    problem = _wrong_ends(bad, goods)
    if problem is not None:
        return stopped(BisectionState.REFUSED, problem, probes)
    return Step(state=BisectionState.SEARCHING)


def _gave_up(probe: Probe) -> bool:
    return probe.state is ProbeState.FAULTED and not by_hand.is_by_hand(probe)


def _best(probes: Sequence[Probe], sha: str, purpose: Purpose) -> Probe:
    """The trial of an end that showed it as it is said to be, else its last one that did not meet faults alone."""
    trials = [p for p in probes if _is_trial(p, sha, purpose) and p.state is not ProbeState.CANCELLED]
    trials.sort(key=lambda probe: not _gave_up(probe))
    best = next((probe for probe in trials if probe.verdict is _EXPECTED[purpose]), trials[-1])
    return replace(best, purpose=purpose)


def _is_trial(probe: Probe, sha: str, purpose: Purpose) -> bool:
    return probe.sha == sha and probe.purpose in (purpose, Purpose.ASKED)


def _wrong_ends(bad: Probe, goods: Sequence[Probe]) -> Problem | None:
    untestable = [probe for probe in (bad, *goods) if probe.verdict is Verdict.SKIP]
    if untestable:
        return wording.end_untestable(untestable[0])
    wrong_goods = [probe for probe in goods if probe.verdict is Verdict.BAD]
    if bad.verdict is Verdict.GOOD and wrong_goods:
        return wording.ends_swapped(wrong_goods[0], bad, BadEnds)
    if bad.verdict is Verdict.GOOD:
        return wording.ends_both_good(goods[0], bad, BadEnds)
    if wrong_goods:
        return wording.ends_both_bad(wrong_goods[0], bad, BadEnds)
    return None


def _search(bisection: Bisection, probes: Sequence[Probe], scope: Scope, forecast: Forecast) -> Step:
    range_ = scope.range
    evidence = evidence_of(bisection, probes)
    live = [probe for probe in probes if probe.state in LIVE_PROBES]
    found = conclusion(range_, evidence, scope.lead.prior, noise_of(bisection))
    if isinstance(found, Found | Contradiction) and any(probe.purpose is Purpose.ASKED for probe in live):
        # Somebody asked for one more run, and it may say otherwise.
        return Step(candidates_left=found.candidates_left, expected_probes=found.expected_probes)
    match found:
        case Found(sha=sha, candidates_left=left, confidence=confidence):
            sure = confidence if bisection.request.flaky else None
            said = by_hand.standing(bisection).get(sha)
            why = wording.why_found(sha, probes, sure, by_hand.reason(said) if said is not None else "")
            answer = Answer((sha,), why, sure)
            return Step(BisectionState.CONFIRMING, (), tuple(live), answer, None, left, 0.0)
        case Contradiction(evidence=pair, why=why, candidates_left=left):
            answer = Answer(tuple(seen.sha for seen in pair), wording.why_contradiction(why))
            return Step(BisectionState.SUSPECTS, (), tuple(live), answer, None, left, 0.0)
        case Suspects(shas=shas, why=why):
            return Step(candidates_left=len(shas)) if live else _suspects(shas, why, probes)
        case Searching(candidates_left=left, expected_probes=expected):
            going = _go_on(bisection, probes, scope, evidence, forecast)
            note = wording.looked_first(scope.lead.points) if scope.lead.points else ""
            return replace(going, candidates_left=left, expected_probes=expected, note=note)


def noise_of(bisection: Bisection) -> Noise | None:
    return UNKNOWN if bisection.request.flaky else None


def _suspects(shas: tuple[str, ...], why: str, probes: Sequence[Probe]) -> Step:
    """What cannot be told apart; when the nodes alone are to blame for that, it is our failure instead."""
    faulted = [probe for probe in probes if _gave_up(probe) and probe.sha in shas]
    if faulted and all(probe.verdict is not Verdict.SKIP or probe in faulted for probe in probes):
        return Step(BisectionState.FAILED, problem=wording.search_faulted(faulted, len(shas)))
    answer = Answer(shas, wording.why_suspects(why, probes))
    return Step(BisectionState.SUSPECTS, (), (), answer, None, len(shas), 0.0)


def _go_on(bisection: Bisection, probes: Sequence[Probe], scope: Scope, evidence: Evidence, forecast: Forecast) -> Step:
    live = [probe for probe in probes if probe.state in LIVE_PROBES]
    noise, width, prior = noise_of(bisection), bisection.request.width, scope.lead.prior
    flying = tuple(probe.sha for probe in live)
    asked = {probe.sha for probe in live if probe.purpose is Purpose.ASKED}
    worthless = set(redundant(scope.range, evidence, flying, prior, noise)) - asked
    kept = tuple(probe.sha for probe in live if probe.sha not in worthless)
    costs = _costs(bisection, scope, evidence, forecast)
    new = next_probes(scope.range, evidence, prior, kept, width, costs, noise)
    ahead: tuple[str, ...] = ()
    forecast = forecast.beside([scope.keys[sha] for sha in new]) if forecast.room else forecast
    if forecast.room:
        flying = (*kept, *new)
        likely = likely_next(scope.range, evidence, prior, flying, LOOK_AHEAD, costs, noise, width=width)
        ahead = worth_building(likely, scope.keys, forecast)
    return Step(
        wanted=tuple(Wanted(sha, Purpose.SEARCH) for sha in new),
        worthless=tuple(probe for probe in live if probe.sha in worthless),
        ahead=ahead,
    )


def _costs(bisection: Bisection, scope: Scope, evidence: Evidence, forecast: Forecast) -> dict[str, float] | None:
    """Of the commits that may still be probed. With noise that is all, else those between the verdicts."""
    if not scope.keys:
        return None
    known = set(evidence.tallies) if not bisection.request.flaky else set()
    shas = [sha for sha in scope.range.shas if sha not in known]
    found = cost(scope.keys, forecast, shas)
    return found and {**dict.fromkeys(scope.keys, max(found.values())), **found}
