"""Outcomes in, verdicts out, by rules alone: the same facts give the same verdict at any time (DESIGN.md section 5)."""

from __future__ import annotations

import signal

from service.domain.bisection import FailureIn, Request
from service.domain.evidence import Fault, Judgement, Outcome, Verdict


def judge(outcome: Outcome, request: Request) -> Judgement:
    """The verdict on one run of the reproduction."""
    if outcome.ended_in == "fix-up":
        return _unfit(outcome)
    if outcome.ended_in == "install":
        return Judgement(Verdict.SKIP, f"the wheel could not be installed: {_how(outcome)}")
    if outcome.out_of_memory:
        return Judgement(Verdict.SKIP, f"killed for want of memory in {outcome.ended_in}")
    if outcome.timed_out:
        return _timed_out(outcome, request)
    verdict = _by_status(outcome)
    if verdict.verdict is Verdict.BAD and request.reproduction.failure and outcome.failure_seen is None:
        return Judgement(Verdict.SKIP, f"another failure: {verdict.reason}, without {request.reproduction.failure!r}")
    return verdict


def judge_build() -> Judgement:
    """The verdict on a commit that builds, where the build is what is looked at."""
    return Judgement(Verdict.GOOD, "builds")


def judge_build_failure(outcome: Outcome, request: Request, notes: tuple[str, ...] = ()) -> Judgement:
    """A commit that does not build says nothing about the failure, unless that is the failure."""
    if outcome.ended_in == "fix-up":
        return _unfit(outcome)
    why = f"does not build: {outcome.first_error or _how(outcome)}" + "".join(f" ({note})" for note in notes)
    if request.failure_in is FailureIn.RUN:
        return Judgement(Verdict.SKIP, why)
    if request.reproduction.failure and outcome.failure_seen is None:
        return Judgement(Verdict.SKIP, f"another failure: {why}, without {request.reproduction.failure!r}")
    return Judgement(Verdict.BAD, why)


def judge_fault(faults: tuple[Fault, ...]) -> Judgement:
    """What nodes did wrong, again and again, is no evidence either."""
    last = faults[-1]
    return Judgement(Verdict.SKIP, f"{len(faults)} faults, the last: {last.message}")


def _unfit(outcome: Outcome) -> Judgement:
    return Judgement(Verdict.SKIP, outcome.first_error or "a fix-up does not apply")


def _timed_out(outcome: Outcome, request: Request) -> Judgement:
    what = "the server was not ready in time" if outcome.ended_in == "ready" else f"{outcome.ended_in} ran out of time"
    if request.hang_is_bad:
        return Judgement(Verdict.BAD, what)
    return Judgement(Verdict.SKIP, f"{what}; say hang: bad when that is the failure")


def _by_status(outcome: Outcome) -> Judgement:
    """What an exit status means to `git bisect run`, and what it should mean where git's reading is wrong."""
    how, status = _how(outcome), outcome.exit_status
    if outcome.ended_in == "ready" and outcome.ready:
        return Judgement(Verdict.GOOD, "the server got ready")
    if outcome.signal is not None:
        return Judgement(Verdict.BAD, how)
    if outcome.ended_in in ("start", "ready"):
        return _server_died(status, how)
    if status == 0:
        return Judgement(Verdict.GOOD, f"{outcome.ended_in} passed")
    if status == 125:
        return Judgement(Verdict.SKIP, f"{outcome.ended_in} asked to skip (exit status 125)")
    if status in (126, 127):
        return Judgement(Verdict.SKIP, f"{outcome.ended_in} itself could not run ({how})")
    return Judgement(Verdict.BAD, how)


def _server_died(status: int | None, how: str) -> Judgement:
    if status in (126, 127):
        return Judgement(Verdict.SKIP, f"the server's command could not run ({how})")
    return Judgement(Verdict.BAD, f"the server ended before it was ready: {how}")


def _how(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"{outcome.ended_in} ran out of time"
    if outcome.signal is not None:
        return f"{outcome.ended_in} died of {_signal(outcome.signal)}"
    if outcome.exit_status is not None and outcome.exit_status > 128:
        return f"{outcome.ended_in} ended with exit status {outcome.exit_status} ({_signal(outcome.exit_status - 128)})"
    return f"{outcome.ended_in} ended with exit status {outcome.exit_status}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
