"""All verdicts of a bisection, derived anew from its outcomes whenever one more is known, or a rule has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.application import by_hand, wording
from service.application.cases import Case, Gives, Ruling, Wanted, failed
from service.application.clues import clues_of
from service.application.judge import REPLACED, rule
from service.application.judge_builds import judge_build_failure
from service.application.meanings import MEANINGS
from service.application.measure import Numbers, Verdicts, decisive, numbers
from service.application.ports import Transaction
from service.domain.amounts import amount
from service.domain.bisection import OF_ENDS, Bisection, FailureIn, Probe, Problem, Purpose
from service.domain.evidence import Judgement, Outcome, Verdict
from service.domain.lifecycle import ProbeState
from service.search.graph import Range
from service.search.priors import Clues

#: So many runs of a commit may fail before they count against the numbers of its other runs.
FAILURES = 3
#: What a build leaves as an outcome.
_BUILD = ("build", "fix-up")


@dataclass(frozen=True)
class Judged:
    """A probe with what its outcome gives now; no verdict as long as a number needs more runs."""

    probe: Probe
    verdict: Verdict | None
    reason: str
    ruling: Ruling | None = None

    @property
    def counts(self) -> bool:
        """As a measurement: the run went well."""
        return self.ruling is not None and self.ruling.gives is Gives.GOOD


def wanted_of(bisection: Bisection, probes: Sequence[Probe]) -> Wanted | None:
    """The failure looked for, as the bad end's first bad run shows it."""
    request = bisection.request
    for probe in probes:
        of_bad_end = probe.purpose is Purpose.BAD_END
        of_bad_end |= probe.purpose is Purpose.ASKED and probe.sha == bisection.bad_sha
        if not of_bad_end or probe.outcome is None or probe.state is not ProbeState.JUDGED:
            continue
        if _plain(bisection, probe, probe.outcome).verdict is Verdict.BAD:
            return _shown(probe.id, probe.outcome) if request.metric is None else Wanted(None, "", probe.id)
    return None


def _shown(probe: str, outcome: Outcome) -> Wanted:
    return Wanted(
        signature=outcome.signature,
        stage=outcome.ended_in,
        probe=probe,
        told=outcome.told is not None,
        timed_out=outcome.timed_out,
        first_error=outcome.first_error,
        signs=frozenset(sign.rule for sign in outcome.signs if sign.root or outcome.signature is None),
    )


def _harmless(probes: Sequence[Probe]) -> frozenset[str]:
    """Signs of runs that pass."""
    outcomes = [probe.outcome for probe in probes if probe.outcome is not None and not failed(probe.outcome)]
    return frozenset(sign.rule for outcome in outcomes for sign in outcome.signs)


def clues(bisection: Bisection, probes: Sequence[Probe]) -> Clues | None:
    """What the failure looked for says of where it comes from; None as long as it is not known."""
    return clues_of(bisection.request, wanted_of(bisection, probes))


def _plain(bisection: Bisection, probe: Probe, outcome: Outcome) -> Judgement:
    if outcome.ended_in in _BUILD:
        return judge_build_failure(outcome, bisection.request)
    return rule(Case(outcome, bisection.request, None, probe.faults, probe.own_day)).judgement


def ruling_of(
    bisection: Bisection, probes: Sequence[Probe], probe: Probe, outcome: Outcome
) -> tuple[Ruling, Judgement]:
    """What one more outcome gives: by itself, and beside those of `probes`, all others of the bisection."""
    others = [other for other in probes if other.id != probe.id]
    wanted = wanted_of(bisection, others)
    ruled = rule(Case(outcome, bisection.request, wanted, probe.faults, probe.own_day, _harmless(others)))
    if bisection.request.metric is None or ruled.gives is not Gives.GOOD:
        return ruled, ruled.judgement
    found = decisive(outcome)
    if found is None or found.value is None:
        return ruled, ruled.judgement
    # All runs together tell what it means.
    return ruled, Judgement(None, f"measured {amount(found.value, found.unit)}")


def judged(bisection: Bisection, probes: Sequence[Probe], range_: Range | None = None) -> tuple[Judged, ...]:
    """Of the probes whose outcome is known, and of commits that somebody spoke of. `range_`: of a search, by which a
    number's runs are told; without it what was said of commits by their numbers stays."""
    found = _ruled(bisection, probes)
    measured = _numbers(bisection, probes, found)
    if measured is None:
        return found
    failures = _failures(found)
    said = Verdicts(measured, range_)
    return tuple(_measured(one, said) if one.counts else _failed(one, failures, measured) for one in found)


def numbers_of(bisection: Bisection, probes: Sequence[Probe]) -> Numbers | None:
    """What was measured; None for a failure that is no number."""
    return _numbers(bisection, probes, _ruled(bisection, probes))


def _numbers(bisection: Bisection, probes: Sequence[Probe], found: Sequence[Judged]) -> Numbers | None:
    runs = numbers(bisection, [one.probe for one in found if one.counts])
    if runs is None:
        return None
    failures, counted = _failures(found), {run.id for run in runs.runs}
    lost = {one.probe.sha for one in found if not one.counts and _failed(one, failures, runs).verdict is Verdict.SKIP}
    lost |= {one.probe.sha for one in found if one.counts and one.probe.id not in counted}
    lost |= {probe.sha for probe in probes if probe.state is ProbeState.FAULTED}
    lost |= {sha for sha, said in by_hand.standing(bisection).items() if said.verdict is Verdict.SKIP}
    return replace(runs, skipped=frozenset(sha for sha in lost if not runs.end(sha)))


def _failures(found: Sequence[Judged]) -> Counter[str]:
    return Counter(one.probe.sha for one in found if not one.counts)


def _ruled(bisection: Bisection, probes: Sequence[Probe]) -> tuple[Judged, ...]:
    wanted = wanted_of(bisection, probes)
    said, harmless = by_hand.standing(bisection), _harmless(probes)
    found = []
    for probe in probes:
        if probe.sha in said and probe.state in by_hand.OVER:
            word = said[probe.sha]
            found.append(Judged(probe, word.verdict, by_hand.reason(word)))
            continue
        outcome, facts = _outcome(probe), by_hand.by_facts(bisection, probe)
        if outcome is not None:
            case = Case(outcome, bisection.request, wanted, harmless=harmless)
            found.append(replace(_judged(bisection, facts, case), probe=probe))
        elif facts != probe:
            found.append(Judged(probe, facts.verdict, facts.reason))
    return tuple(found)


def _outcome(probe: Probe) -> Outcome | None:
    """Of a probe that was given up, that of its last attempt: a rule may have been wrong about the node."""
    if probe.state is ProbeState.FAULTED:
        return probe.faults[-1].outcome if probe.faults else None
    return probe.outcome if probe.state is ProbeState.JUDGED else None


def _judged(bisection: Bisection, probe: Probe, case: Case) -> Judged:
    if case.wanted is not None and case.wanted.probe == probe.id:
        case = replace(case, wanted=None)
    outcome, wanted = case.outcome, case.wanted
    if outcome.ended_in in _BUILD:
        told = judge_build_failure(outcome, bisection.request, wanted=wanted)
        # What was said when it was built says more: why it was not made in a cheaper way.
        return Judged(probe, told.verdict, probe.reason if told.verdict is probe.verdict else told.reason)
    given_up = probe.state is ProbeState.FAULTED
    faults = probe.faults[:-1] if given_up else probe.faults
    ruled = rule(replace(case, faults=faults, own_day=probe.own_day))
    if given_up and ruled.gives not in (Gives.GOOD, Gives.BAD):
        return Judged(probe, probe.verdict, probe.reason)
    return Judged(probe, ruled.judgement.verdict, ruled.reason, ruled)


def _measured(one: Judged, said: Verdicts) -> Judged:
    """A run that went well is told by its number."""
    found = said.said(one.probe)
    return replace(one, verdict=found.verdict, reason=found.reason)


def _failed(one: Judged, failures: Mapping[str, int], measured: Numbers) -> Judged:
    """A run that did not go well says nothing about the number; nor do a few beside those that did."""
    few = failures[one.probe.sha] < FAILURES and any(run.sha == one.probe.sha for run in measured.runs)
    skips = one.ruling is not None and one.ruling.gives is Gives.SKIP
    return replace(one, verdict=None) if few and skips else one


def derive(tx: Transaction, bisection: Bisection, now: datetime, range_: Range | None = None) -> tuple[Probe, ...]:
    """All probes, with the verdicts that their outcomes have now; what changed by that is kept and told."""
    probes = tx.probes(bisection.id)
    found = [one for one in judged(bisection, probes, range_) if (one.verdict, one.reason) != _given(one.probe)]
    changed = {one.probe.id: one for one in found}
    for one in found:
        tx.save_probe(_changed(one))
        if one.verdict is one.probe.verdict:
            continue
        data: dict[str, object] = {"probe": one.probe.id, "sha": one.probe.sha, "verdict": str(one.verdict or "")}
        was = str(one.probe.verdict or "")
        tx.add_event(bisection.id, now, "judged again", {**data, "was": was, "reason": one.reason})
    return tuple(_changed(changed[probe.id]) if probe.id in changed else probe for probe in probes)


def _given(probe: Probe) -> tuple[Verdict | None, str]:
    return probe.verdict, probe.reason


def _changed(one: Judged) -> Probe:
    return replace(one.probe, verdict=one.verdict, reason=one.reason)


def refusal(bisection: Bisection, probes: Sequence[Probe]) -> Problem | None:
    """Why this request cannot be judged at all, by the first end that shows it: what a commit between them alone shows
    is no reason to end the whole. `probes`: with the verdicts that were derived last."""
    skipped = any(probe.purpose in OF_ENDS and probe.verdict is Verdict.SKIP for probe in probes)
    if bisection.request.failure_in is FailureIn.BUILD or not skipped:
        return None
    found = judged(bisection, probes)
    # Where a run has passed, a model is there.
    passed = any(one.counts for one in found)
    for one in found:
        if one.probe.purpose not in OF_ENDS or one.ruling is None or one.ruling.gives is not Gives.REFUSED:
            continue
        if one.ruling.kind == REPLACED or not passed:
            return wording.refused(one.probe, one.ruling.kind, one.ruling.reason, one.ruling.advice)
    return None


def taken_back(bisection: Bisection, probes: Sequence[Probe]) -> bool:
    """It was refused for what a run showed, and no run shows it any more."""
    problem = bisection.problem
    said = problem is not None and (problem.slug == REPLACED or problem.slug in MEANINGS)
    return said and refusal(bisection, probes) is None
