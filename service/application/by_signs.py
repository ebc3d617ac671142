"""What signs in a log make of an outcome: the node's fault, the request's, the dependencies', or the commit's own."""

from __future__ import annotations

from collections.abc import Sequence

from service.application.cases import VAGUE, Case, Gives, Ruling, failed, skip
from service.application.meanings import MEANINGS, Meaning, Means
from service.domain.evidence import Outcome, Sign, Verdict

#: Attempts after which a failure that a commit may cause too is not the node's any more.
TRIED_ELSEWHERE = 2


def broken(case: Case) -> Ruling | None:
    """Before anything that the run may say of itself: on a broken card nothing that it says is worth anything."""
    told = case.outcome.told
    if not failed(case.outcome) and (told is None or told.verdict is Verdict.GOOD):
        return None
    return _first(case, [sign for sign in _known(case.outcome) if MEANINGS[sign.rule].means is Means.OUT])


def node_s_own(outcome: Outcome) -> bool:
    """The failure itself is one that no commit causes."""
    return any(sign.root and not MEANINGS[sign.rule].commits for sign in _known(outcome))


def by_signs(case: Case) -> Ruling | None:
    return _first(case, sorted(_known(case.outcome), key=lambda sign: list(MEANINGS).index(sign.rule)))


def _first(case: Case, signs: Sequence[Sign]) -> Ruling | None:
    """Of the signs that count, the ruling of the first that gives one."""
    for sign in signs:
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
    if sign.root or meaning.anywhere:
        return True
    # What is said beside the failure counts only where nothing else tells what failed.
    telling = root is not None and root.kind not in VAGUE
    return not telling and case.outcome.failure_seen is None and sign.rule not in case.harmless


def _by_sign(sign: Sign, meaning: Meaning, case: Case) -> Ruling | None:
    reason = f"{meaning.what}: {sign.said}"
    if meaning.commits and sum(fault.kind == sign.rule for fault in case.faults) >= TRIED_ELSEWHERE:
        return _everywhere(case, sign, reason)
    if meaning.means in (Means.ELSEWHERE, Means.LATER) and _control_passes(case):
        # On the same node, at the same time: what it lacks, the reproduction alone lacks.
        return None
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
            return skip(f"{reason}; {meaning.advice}")
        case Means.HELD:
            return _held(case, sign, meaning)
        case Means.OWN_DAY:
            return _own_day(case, reason, meaning)


def _control_passes(case: Case) -> bool:
    return case.request.control is not None and case.outcome.control is not None and not failed(case.outcome.control)


def _everywhere(case: Case, sign: Sign, reason: str) -> Ruling | None:
    """At the bad end it is the failure; elsewhere all nodes of a class may be unfit for that commit."""
    if case.wanted is None or sign.rule in case.wanted.signs:
        return None
    return skip(f"{reason}; on every attempt")


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
    return skip(reason) if case.wanted is not None else None
