"""Verdicts on commits by their builds, and on probes that met nothing but faults."""

from __future__ import annotations

from service.application.cases import Case, Ruling, Wanted, how_it_ended, said, skip
from service.application.judge import other
from service.application.similar import same
from service.domain.bisection import FailureIn, Request
from service.domain.evidence import Fault, Judgement, Outcome, Verdict


def judge_build() -> Judgement:
    """The verdict on a commit that builds, where the build is what is looked at."""
    return Judgement(Verdict.GOOD, "builds")


def judge_build_failure(
    outcome: Outcome, request: Request, notes: tuple[str, ...] = (), wanted: Wanted | None = None
) -> Judgement:
    """A commit that does not build says nothing about the failure, unless that is the failure."""
    if outcome.ended_in == "fix-up":
        return skip(outcome.first_error or "a fix-up does not apply").judgement
    how = outcome.first_error or how_it_ended(outcome)
    why = f"does not build: {how}" + "".join(f" ({note})" for note in notes)
    if request.failure_in is FailureIn.RUN:
        return Judgement(Verdict.SKIP, why)
    case = Case(outcome, request, wanted)
    other = _other_build(case, why)
    return other.judgement if other is not None else Judgement(Verdict.BAD, why)


def _other_build(case: Case, why: str) -> Ruling | None:
    text, looked_for = case.request.reproduction.failure, case.wanted.signature if case.wanted else None
    if text:
        return other(case, f"{why}, without {text!r}") if case.outcome.failure_seen is None else None
    mine, wanted = case.outcome.signature, case.wanted
    if wanted is None or (mine is not None and looked_for is not None and same(looked_for, mine)):
        return None
    if looked_for is None and mine is None and case.outcome.first_error == wanted.first_error:
        return None
    return other(case, f"{why}; looked for: {said(looked_for) if looked_for else wanted.first_error or 'no word'}")


def judge_fault(faults: tuple[Fault, ...]) -> Judgement:
    """What nodes did wrong, again and again, is no evidence either."""
    last = faults[-1]
    return Judgement(Verdict.SKIP, f"{len(faults)} faults, the last: {last.message}")
