"""From outcomes to verdicts, by the service's rules; an exit status means what it means to `git bisect run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.application.cases import Case, Wanted, said
from service.application.judge import rule
from service.application.similar import same
from service.domain.bisection import Purpose, Reproduction, Request
from service.domain.evidence import Outcome, Verdict
from service.domain.recipe import Recipe, SandboxKind
from service.local.asked import CHECKOUT, SCRIPT, Judged, Rules, Seen, Terms


def judged(seen: Sequence[Seen], rules: Rules, terms: Terms) -> tuple[Judged, ...]:
    """All of them anew, since the failing end tells what failure is looked for."""
    wanted = _wanted(seen, rules, terms)
    harmless = frozenset(sign.rule for one in seen if one.outcome.exit_status == 0 for sign in one.outcome.signs)
    return tuple(_judged(one, wanted, rules, harmless) for one in seen)


def _wanted(seen: Sequence[Seen], rules: Rules, terms: Terms) -> Wanted | None:
    failing = Purpose.BAD_END if terms.new == "bad" else Purpose.GOOD_END
    for one in seen:
        if one.purpose is not failing or _judged(one, None, rules, frozenset()).verdict is not Verdict.BAD:
            continue
        outcome = one.outcome
        signs = frozenset(sign.rule for sign in outcome.signs if sign.root or outcome.signature is None)
        return Wanted(
            outcome.signature,
            outcome.ended_in,
            str(one.number),
            told=outcome.told is not None,
            timed_out=outcome.timed_out,
            signs=signs,
        )
    return None


def _judged(one: Seen, wanted: Wanted | None, rules: Rules, harmless: frozenset[str]) -> Judged:
    outcome = one.outcome
    if outcome.ended_in == CHECKOUT:
        return _counted(Judged(one, Verdict.SKIP, f"it could not be checked out: {outcome.first_error}"), rules)
    if outcome.timed_out and not rules.timeout_is_bad:
        why = f"{outcome.ended_in} ran out of time; where that is the failure: --timeout-is-bad"
        return _counted(Judged(one, Verdict.SKIP, why), rules)
    if wanted is not None and wanted.probe == str(one.number):
        wanted = None
    if rules.same_failure:
        case = Case(outcome, _request(rules), wanted, harmless=harmless)
    else:
        case = Case(_plain(outcome), _request(rules))
    ruling = rule(case)
    verdict = ruling.judgement.verdict or Verdict.SKIP
    return _counted(Judged(one, verdict, ruling.reason, _other(outcome, verdict, wanted, rules)), rules)


def _plain(outcome: Outcome) -> Outcome:
    """What counts is how it ended; what its log says is for the reader alone."""
    return replace(outcome, signs=(), told=None)


def _counted(one: Judged, rules: Rules) -> Judged:
    if one.verdict is not Verdict.SKIP or rules.skip_is is Verdict.SKIP or not_run(one.seen.outcome):
        return one
    return replace(one, verdict=rules.skip_is, reason=f"{one.reason}; counted as {rules.skip_is}")


def not_run(outcome: Outcome) -> bool:
    return outcome.ended_in == SCRIPT and outcome.signal is None and outcome.exit_status in (126, 127)


def _other(outcome: Outcome, verdict: Verdict, wanted: Wanted | None, rules: Rules) -> str:
    """A failure that looks like another one than that of the bad end, and yet counts."""
    if verdict is not Verdict.BAD or rules.same_failure or wanted is None or wanted.signature is None:
        return ""
    if outcome.signature is None or same(wanted.signature, outcome.signature):
        return ""
    return f"perhaps another failure than the bad end's, which was: {said(wanted.signature)}"


def _request(rules: Rules) -> Request:
    return Request(
        repo="",
        good=(),
        bad="",
        reproduction=Reproduction(script="."),
        recipe=Recipe(name=""),
        sandbox=SandboxKind.PROCESS,
        hang_is_bad=rules.timeout_is_bad,
        flaky=rules.flaky,
    )
