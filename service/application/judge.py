"""Outcomes in, verdicts out, by rules alone: the same facts give the same verdict at any time (docs/verdicts.md).

The rules stand in one order, and the first that has something to say decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.application.cases import (
    Case,
    Gives,
    Ruling,
    Wanted,
    earlier,
    failed,
    how_it_ended,
    how_it_went,
    said,
    what_failed,
)
from service.application.meanings import MEANINGS, Meaning, Means
from service.application.similar import same
from service.domain.bisection import FailureIn, OtherFailures, Request
from service.domain.evidence import Fault, Judgement, Outcome, Sign, Verdict

#: Attempts after which a failure that a commit may cause too is not the node's any more.
TRIED_ELSEWHERE = 2
#: Kinds of signatures that say little about what failed.
_VAGUE = frozenset({"other", "hang"})


@dataclass(frozen=True)
class Rule:
    """`told`: what it says, for the docs."""

    name: str
    told: str
    rule: Callable[[Case], Ruling | None]


def rule(case: Case) -> Ruling:
    """Of one run of the reproduction."""
    return next(found for each in RULES if (found := each.rule(case)) is not None)


def judge(outcome: Outcome, request: Request, wanted: Wanted | None = None) -> Judgement:
    return rule(Case(outcome, request, wanted)).judgement


def _skip(reason: str) -> Ruling:
    return Ruling(Gives.SKIP, reason)


def _replaced(case: Case) -> Ruling | None:
    found = case.outcome.replaced
    if found is None:
        return None
    by = f", by: {found.by}" if found.by else ""
    reason = (
        f"the reproduction replaced the package under test: {found.was or 'nothing'} → {found.now or 'nothing'}{by}"
    )
    return Ruling(Gives.REFUSED, reason, "replaced-package", "take the line out that installs it: firstbad does that")


def _fixup(case: Case) -> Ruling | None:
    if case.outcome.ended_in != "fix-up":
        return None
    return _skip(case.outcome.first_error or "a fix-up does not apply")


def _install(case: Case) -> Ruling | None:
    return (
        _skip(f"the wheel could not be installed: {how_it_went(case)}") if case.outcome.ended_in == "install" else None
    )


def _told(case: Case) -> Ruling | None:
    told = case.outcome.told
    if told is None:
        return None
    why = f"the {case.outcome.ended_in} said {told.verdict}" + (f": {told.reason}" if told.reason else "")
    if told.verdict is Verdict.GOOD and failed(case.outcome):
        return _skip(f"{why}, but then {how_it_went(case)}")
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
    if any(sign.root and not MEANINGS[sign.rule].commits for sign in _known(case.outcome)):
        return None
    return _controlled(case, what_failed(case))


def _signs(case: Case) -> Ruling | None:
    for sign in sorted(_known(case.outcome), key=lambda sign: list(MEANINGS).index(sign.rule)):
        meaning = MEANINGS[sign.rule]
        if _counts(sign, meaning, case) and (found := _by_sign(sign, meaning, case)) is not None:
            return found
    return None


def _known(outcome: Outcome) -> list[Sign]:
    return [sign for sign in outcome.signs if sign.rule in MEANINGS]


def _counts(sign: Sign, meaning: Meaning, case: Case) -> bool:
    root = case.outcome.signature
    if meaning.means is Means.OUT and not case.outcome.environment.get("gpus"):
        # Any text may speak of a broken card; a run that had none cannot have met one.
        return False
    return sign.root or meaning.anywhere or root is None or root.kind in _VAGUE


def _by_sign(sign: Sign, meaning: Meaning, case: Case) -> Ruling | None:
    reason = f"{meaning.what}: {sign.said}"
    if meaning.commits and sum(fault.kind == sign.rule for fault in case.faults) >= TRIED_ELSEWHERE:
        return _everywhere(case, reason)
    match meaning.means:
        case Means.ELSEWHERE:
            return Ruling(Gives.FAULT, reason, sign.rule, meaning.advice)
        case Means.LATER:
            return Ruling(Gives.LATER, reason, sign.rule, meaning.advice)
        case Means.OUT:
            return Ruling(Gives.OUT, reason, sign.rule, meaning.advice)
        case Means.HOPELESS:
            return Ruling(Gives.REFUSED, reason, sign.rule, meaning.advice)
        case Means.SKIP:
            return _skip(f"{reason}; {meaning.advice}")
        case Means.HELD:
            return _held(case, sign, meaning)
        case Means.OWN_DAY:
            return _own_day(case, reason, meaning)


def _everywhere(case: Case, reason: str) -> Ruling | None:
    """At the bad end it is the failure; elsewhere all nodes of a class may be unfit for that commit."""
    if case.wanted is None or case.outcome.failure_seen is not None:
        return None
    return _skip(f"{reason}; on every attempt")


def _held(case: Case, sign: Sign, meaning: Meaning) -> Ruling | None:
    holder = case.outcome.environment.get("gpu_held_by")
    if not holder:
        # The card was empty: what the commit's server wants is the commit's doing.
        return None
    return Ruling(Gives.FAULT, f"{meaning.what}, as {holder}: {sign.said}", sign.rule, meaning.advice)


def _own_day(case: Case, reason: str, meaning: Meaning) -> Ruling | None:
    """The bad end, where it fails so with its own day's dependencies as well, has just this failure."""
    fixed = not case.outcome.dependencies or case.request.recipe.deps.as_of == "commit"
    if not case.own_day and not fixed:
        return Ruling(Gives.OWN_DAY, reason)
    return _skip(reason) if case.wanted is not None else None


def _memory(case: Case) -> Ruling | None:
    outcome = case.outcome
    if not outcome.out_of_memory or outcome.failure_seen is not None:
        return None
    return _skip(f"killed for want of memory in {outcome.ended_in}")


def _timed_out(case: Case) -> Ruling | None:
    outcome = case.outcome
    if not outcome.timed_out:
        return None
    what = "the server was not ready in time" if outcome.ended_in == "ready" else f"{outcome.ended_in} ran out of time"
    if case.request.hang_is_bad:
        return _controlled(case, what)
    return _skip(f"{what}; say hang: bad when that is the failure")


def _asked_to_skip(case: Case) -> Ruling | None:
    outcome = case.outcome
    if outcome.signal is None and outcome.exit_status == 125 and outcome.ended_in not in ("start", "ready"):
        return _skip(f"{outcome.ended_in} asked to skip (exit status 125)")
    return None


def _not_run(case: Case) -> Ruling | None:
    outcome = case.outcome
    if outcome.signal is not None or outcome.exit_status not in (126, 127):
        return None
    if outcome.ended_in in ("start", "ready"):
        return _skip(f"the server's command could not run ({how_it_went(case)})")
    return _skip(f"{outcome.ended_in} itself could not run ({how_it_went(case)})")


def _metric(case: Case) -> Ruling | None:
    if case.request.metric is None:
        return None
    return _skip(f"nothing was measured: {what_failed(case)}")


def _other_text(case: Case) -> Ruling | None:
    wanted = case.request.reproduction.failure
    if not wanted or case.outcome.failure_seen is not None:
        return None
    return _other(case, f"{what_failed(case)}, without {wanted!r}")


def _other_signature(case: Case) -> Ruling | None:
    """What the user's own words did not settle."""
    wanted = case.wanted.signature if case.wanted else None
    if wanted is None or case.request.reproduction.failure:
        return None
    mine = case.outcome.signature
    if mine is not None and same(wanted, mine):
        return None
    return _other(case, f"{what_failed(case)}; looked for: {said(wanted)}")


def _other_stage(case: Case) -> Ruling | None:
    if case.wanted is None or not earlier(case.outcome.ended_in, case.wanted.stage):
        return None
    return _other(case, f"{what_failed(case)}; the failure looked for comes later, in {case.wanted.stage}")


def _other(case: Case, how: str) -> Ruling:
    if case.request.other_failures is OtherFailures.BAD:
        return _controlled(case, how)
    return _skip(f"another failure: {how}")


def _failing(case: Case) -> Ruling | None:
    if case.outcome.exit_status is None and case.outcome.signal is None:
        return _skip(f"nothing tells how {case.outcome.ended_in} ended")
    return _controlled(case, what_failed(case))


def _controlled(case: Case, why: str) -> Ruling:
    """A bad counts when the control passes, where there is one."""
    if case.request.control is None:
        return Ruling(Gives.BAD, why)
    control = case.outcome.control
    if control is None:
        return _skip(f"{why}; the control was not run")
    plain = replace(case.request, reproduction=case.request.control, control=None, metric=None, hang_is_bad=False)
    ruled = rule(Case(control, plain, faults=case.faults, own_day=True))
    if ruled.gives is Gives.GOOD:
        return Ruling(Gives.BAD, f"{why}; the control passes")
    if ruled.gives in (Gives.FAULT, Gives.LATER, Gives.OUT, Gives.REFUSED):
        return replace(ruled, reason=f"in the control: {ruled.reason}")
    return _skip(f"also fails with the control: {ruled.reason}")


#: docs/verdicts.md prints this table.
RULES: tuple[Rule, ...] = (
    Rule("replaced", "refused: the reproduction put another package in the place of the one under test", _replaced),
    Rule("fix-up", "skip: a fix-up does not apply to this commit", _fixup),
    Rule("install", "skip: the wheel could not be installed", _install),
    Rule(
        "told",
        "as the check or the script itself said, by a line `firstbad: bad wrong answer` (or good, or skip)",
        _told,
    ),
    Rule("passed", "good: it ended with 0, or the server got ready and there is nothing to check", _passed),
    Rule("asked", "skip: exit status 125", _asked_to_skip),
    Rule("the-failure", "bad: it failed as the bad end does, by its signature", _the_failure),
    Rule("signs", "by what its log shows of the node, the request or the dependencies: the table below", _signs),
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
    Rule("earlier", "skip: it failed in an earlier phase; bad with `other_failures: bad`", _other_stage),
    Rule("failed", "bad: any other exit status, or death by a signal; skip where neither is known", _failing),
)


def judge_build() -> Judgement:
    """The verdict on a commit that builds, where the build is what is looked at."""
    return Judgement(Verdict.GOOD, "builds")


def judge_build_failure(
    outcome: Outcome, request: Request, notes: tuple[str, ...] = (), wanted: Wanted | None = None
) -> Judgement:
    """A commit that does not build says nothing about the failure, unless that is the failure."""
    if outcome.ended_in == "fix-up":
        return _skip(outcome.first_error or "a fix-up does not apply").judgement
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
        return _other(case, f"{why}, without {text!r}") if case.outcome.failure_seen is None else None
    mine = case.outcome.signature
    if looked_for is None or mine is None or same(looked_for, mine):
        return None
    return _other(case, f"{why}; looked for: {said(looked_for)}")


def judge_fault(faults: tuple[Fault, ...]) -> Judgement:
    """What nodes did wrong, again and again, is no evidence either."""
    last = faults[-1]
    return Judgement(Verdict.SKIP, f"{len(faults)} faults, the last: {last.message}")
