"""Outcomes in, verdicts out, by rules alone: the same facts give the same verdict at any time (docs/verdicts.md).

The rules stand in one order, and the first that has something to say decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.application.by_signs import broken, by_signs, node_s_own
from service.application.cases import (
    VAGUE,
    Case,
    Gives,
    Ruling,
    elsewhere,
    failed,
    how_it_went,
    said,
    skip,
    what_failed,
)
from service.application.similar import same
from service.domain.bisection import OtherFailures
from service.domain.evidence import Verdict

#: The kind of a request whose reproduction puts another package in the place of the one under test.
REPLACED = "replaced-package"


@dataclass(frozen=True)
class Rule:
    """`told`: what it says, for the docs."""

    name: str
    told: str
    rule: Callable[[Case], Ruling | None]


def rule(case: Case) -> Ruling:
    """Of one run of the reproduction."""
    return next(found for each in RULES if (found := each.rule(case)) is not None)


def _replaced(case: Case) -> Ruling | None:
    found = case.outcome.replaced
    if found is None:
        return None
    by = f", by: {found.by}" if found.by else ""
    reason = (
        f"the reproduction replaced the package under test: {found.was or 'nothing'} → {found.now or 'nothing'}{by}"
    )
    return Ruling(
        Gives.REFUSED, reason, REPLACED, "take out what installs, changes or removes it: firstbad installs it"
    )


def _fixup(case: Case) -> Ruling | None:
    if case.outcome.ended_in != "fix-up":
        return None
    return skip(case.outcome.first_error or "a fix-up does not apply")


def _install(case: Case) -> Ruling | None:
    return (
        skip(f"the wheel could not be installed: {how_it_went(case)}") if case.outcome.ended_in == "install" else None
    )


def _told(case: Case) -> Ruling | None:
    told = case.outcome.told
    if told is None:
        return None
    why = f"the {case.outcome.ended_in} said {told.verdict}" + (f": {told.reason}" if told.reason else "")
    if told.verdict is Verdict.GOOD and failed(case.outcome):
        return skip(f"{why}, but then {how_it_went(case)}")
    if told.verdict is Verdict.BAD:
        return _controlled(case, why)
    return Ruling(Gives(told.verdict), why)


def _passed(case: Case) -> Ruling | None:
    outcome = case.outcome
    if failed(outcome):
        return None
    got_ready = outcome.ended_in == "ready" and outcome.ready
    return Ruling(Gives.GOOD, "the server got ready" if got_ready else f"{outcome.ended_in} passed")


def _the_failure(case: Case) -> Ruling | None:
    """The signature alone: a text that a user gave may be as generic as the last line of every failure."""
    if case.wanted is None or case.outcome.signature is None or case.wanted.signature is None:
        return None
    if case.request.reproduction.failure and case.outcome.failure_seen is None:
        return None
    if not same(case.wanted.signature, case.outcome.signature):
        return None
    if node_s_own(case.outcome):
        return None
    return _controlled(case, what_failed(case))


def _memory(case: Case) -> Ruling | None:
    outcome = case.outcome
    if not outcome.out_of_memory or outcome.failure_seen is not None:
        return None
    return skip(f"killed for want of memory in {outcome.ended_in}")


def _timed_out(case: Case) -> Ruling | None:
    outcome = case.outcome
    if not outcome.timed_out:
        return None
    what = "the server was not ready in time" if outcome.ended_in == "ready" else f"{outcome.ended_in} ran out of time"
    if not case.request.hang_is_bad:
        return skip(f"{what}; say hang: bad when that is the failure")
    if case.wanted is not None and not case.wanted.timed_out:
        return other(case, f"{what}, which the bad end did not")
    return _other_text(case) or _other_stage(case) or _controlled(case, what)


def _asked_to_skip(case: Case) -> Ruling | None:
    outcome = case.outcome
    if outcome.signal is None and outcome.exit_status == 125 and outcome.ended_in not in ("start", "ready"):
        return skip(f"{outcome.ended_in} asked to skip (exit status 125)")
    return None


def _not_run(case: Case) -> Ruling | None:
    outcome = case.outcome
    if outcome.signal is not None or outcome.exit_status not in (126, 127):
        return None
    if outcome.ended_in in ("start", "ready"):
        return skip(f"the server's command could not run ({how_it_went(case)})")
    return skip(f"{outcome.ended_in} itself could not run ({how_it_went(case)})")


def _metric(case: Case) -> Ruling | None:
    if case.request.metric is None:
        return None
    return skip(f"nothing was measured: {what_failed(case)}")


def _other_text(case: Case) -> Ruling | None:
    wanted = case.request.reproduction.failure
    if not wanted or case.outcome.failure_seen is not None:
        return None
    return other(case, f"{what_failed(case)}, without {wanted!r}")


def _other_signature(case: Case) -> Ruling | None:
    """What the user's own words did not settle."""
    if case.wanted is None or case.request.reproduction.failure:
        return None
    wanted, mine = case.wanted.signature, case.outcome.signature
    if case.wanted.told:
        return other(case, f"{what_failed(case)}; at the bad end it was told")
    if case.wanted.timed_out and not case.outcome.timed_out:
        return other(case, f"{what_failed(case)}; the bad end ran out of time")
    if wanted is None:
        telling = mine is not None and mine.kind not in VAGUE
        return other(case, f"{what_failed(case)}; at the bad end nothing says what fails") if telling else None
    if mine is not None and same(wanted, mine):
        return None
    return other(case, f"{what_failed(case)}; looked for: {said(wanted)}")


def _other_stage(case: Case) -> Ruling | None:
    if case.wanted is None or not elsewhere(case.outcome.ended_in, case.wanted.stage):
        return None
    return other(case, f"{what_failed(case)}; the failure looked for comes in {case.wanted.stage}")


def other(case: Case, how: str) -> Ruling:
    if case.request.other_failures is OtherFailures.BAD:
        return _controlled(case, how)
    return skip(f"another failure: {how}")


def _failing(case: Case) -> Ruling | None:
    if case.outcome.exit_status is None and case.outcome.signal is None:
        return skip(f"nothing tells how {case.outcome.ended_in} ended")
    return _controlled(case, what_failed(case))


def _controlled(case: Case, why: str) -> Ruling:
    """A bad counts when the control passes, where there is one."""
    if case.request.control is None:
        return Ruling(Gives.BAD, why)
    control = case.outcome.control
    if control is None:
        return skip(f"{why}; the control was not run")
    plain = replace(case.request, reproduction=case.request.control, control=None, metric=None, hang_is_bad=False)
    ruled = rule(Case(control, plain, faults=case.faults, own_day=True))
    if ruled.gives is Gives.GOOD:
        return Ruling(Gives.BAD, f"{why}; the control passes")
    if ruled.gives in (Gives.FAULT, Gives.LATER, Gives.OUT, Gives.REFUSED):
        return replace(ruled, reason=f"in the control: {ruled.reason}")
    return skip(f"also fails with the control: {ruled.reason}")


#: docs/verdicts.md prints this table.
RULES: tuple[Rule, ...] = (
    Rule("replaced", "refused: the reproduction put another package in the place of the one under test", _replaced),
    Rule("fix-up", "skip: a fix-up does not apply to this commit", _fixup),
    Rule("install", "skip: the wheel could not be installed", _install),
    Rule("broken", "fault: it failed, and its log shows that a GPU that it had is broken", broken),
    Rule(
        "told",
        "as the check or the script itself said, by a line `firstbad: bad wrong answer` (or good, or skip)",
        _told,
    ),
    Rule("passed", "good: it ended with 0, or the server got ready and there is nothing to check", _passed),
    Rule("asked", "skip: exit status 125", _asked_to_skip),
    Rule("the-failure", "bad: it failed as the bad end does, by its signature", _the_failure),
    Rule("signs", "by what its log shows of the node, the request or the dependencies: the table below", by_signs),
    Rule("memory", "skip: killed for want of memory", _memory),
    Rule("time", "skip: out of time; bad with `hang: bad`", _timed_out),
    Rule("not-run", "skip: exit status 126 or 127, it could not run at all", _not_run),
    Rule("no-number", "skip: it failed, so that there is no number to compare (with `metric`)", _metric),
    Rule(
        "other-text",
        "skip: another failure, without the text of `failure`; bad with `other_failures: bad`",
        _other_text,
    ),
    Rule("other", "skip: another failure by its signature; bad with `other_failures: bad`", _other_signature),
    Rule("other-phase", "skip: it failed in another phase; bad with `other_failures: bad`", _other_stage),
    Rule("failed", "bad: any other exit status, or death by a signal; skip where neither is known", _failing),
)
