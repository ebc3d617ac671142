"""All verdicts of a bisection, derived anew from its outcomes whenever one more is known, or a rule has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.application import wording
from service.application.cases import Case, Gives, Ruling, Wanted
from service.application.clues import clues_of
from service.application.judge import judge_build_failure, rule
from service.application.measure import Measured, measured, verdict
from service.application.ports import Transaction
from service.domain.bisection import Bisection, FailureIn, Probe, Problem, Purpose
from service.domain.evidence import Judgement, Outcome, Verdict
from service.domain.lifecycle import ProbeState
from service.search.priors import Clues

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
        if probe.purpose is not Purpose.BAD_END or probe.outcome is None or probe.state is not ProbeState.JUDGED:
            continue
        if _plain(bisection, probe, probe.outcome).verdict is Verdict.BAD:
            found = probe.outcome.signature
            return Wanted(found if request.metric is None else None, probe.outcome.ended_in, probe.id)
    return None


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
    ruled = rule(Case(outcome, bisection.request, wanted_of(bisection, others), probe.faults, probe.own_day))
    numbers = measured(bisection, [one.probe for one in judged(bisection, others) if one.counts])
    if numbers is None or ruled.gives is not Gives.GOOD:
        return ruled, ruled.judgement
    mine = replace(probe, outcome=outcome)
    found = _by_number(Judged(mine, Verdict.GOOD, ruled.reason, ruled), numbers.plus(mine))
    return ruled, Judgement(found.verdict, found.reason)


def judged(bisection: Bisection, probes: Sequence[Probe]) -> tuple[Judged, ...]:
    """Of the probes whose outcome is known."""
    wanted = wanted_of(bisection, probes)
    known = [(probe, outcome) for probe in probes if (outcome := _outcome(probe)) is not None]
    found = [_judged(bisection, probe, outcome, wanted) for probe, outcome in known]
    numbers = measured(bisection, [one.probe for one in found if one.counts])
    return tuple(found) if numbers is None else tuple(_by_number(one, numbers) for one in found)


def _outcome(probe: Probe) -> Outcome | None:
    """Of a probe that was given up, that of its last attempt: a rule may have been wrong about the node."""
    if probe.state is ProbeState.FAULTED:
        return probe.faults[-1].outcome if probe.faults else None
    return probe.outcome if probe.state is ProbeState.JUDGED else None


def _judged(bisection: Bisection, probe: Probe, outcome: Outcome, wanted: Wanted | None) -> Judged:
    if wanted is not None and wanted.probe == probe.id:
        wanted = None
    if outcome.ended_in in _BUILD:
        told = judge_build_failure(outcome, bisection.request, wanted=wanted)
        # What was said when it was built says more: why it was not made in a cheaper way.
        return Judged(probe, told.verdict, probe.reason if told.verdict is probe.verdict else told.reason)
    given_up = probe.state is ProbeState.FAULTED
    faults = probe.faults[:-1] if given_up else probe.faults
    ruled = rule(Case(outcome, bisection.request, wanted, faults, probe.own_day))
    if given_up and ruled.gives not in (Gives.GOOD, Gives.BAD):
        return Judged(probe, probe.verdict, probe.reason)
    return Judged(probe, ruled.judgement.verdict, ruled.reason, ruled)


def _by_number(one: Judged, numbers: Measured) -> Judged:
    """A run that went well is told by its number; one that did not says nothing."""
    if not one.counts or one.probe.outcome is None:
        return one
    if not one.probe.outcome.samples:
        why = one.probe.outcome.environment.get("metric", "no number was found")
        return replace(one, verdict=Verdict.SKIP, reason=f"nothing was measured: {why}")
    told = verdict(numbers, one.probe.sha)
    if told is None:
        values = ", ".join(f"{value:g}" for value in one.probe.outcome.samples)
        return replace(one, verdict=None, reason=f"measured {values}; more runs are needed")
    return replace(one, verdict=told.verdict, reason=told.reason)


def derive(tx: Transaction, bisection: Bisection, now: datetime) -> tuple[Probe, ...]:
    """All probes, with the verdicts that their outcomes have now; what changed by that is kept and told."""
    probes = tx.probes(bisection.id)
    found = [one for one in judged(bisection, probes) if (one.verdict, one.reason) != _given(one.probe)]
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
    """Why this request cannot be judged at all, by the first run that shows it."""
    if bisection.request.failure_in is FailureIn.BUILD:
        return None
    for one in judged(bisection, probes):
        if one.ruling is not None and one.ruling.gives is Gives.REFUSED:
            return wording.refused(one.probe, one.ruling.kind, one.ruling.reason, one.ruling.advice)
    return None
