"""What a ruling stands on, what it may give, and the words in which an outcome is told."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum

from service.domain.bisection import Request
from service.domain.evidence import Fault, Judgement, Outcome, Signature, Verdict

#: The phases of a run that may fail, in order; those of the same number come to the same.
STAGES = {"unpack": 0, "install": 1, "start": 2, "ready": 2, "script": 3, "check": 3}


def elsewhere(stage: str, than: str) -> bool:
    """A failure in another phase than that of the failure looked for is another failure."""
    return stage in STAGES and than in STAGES and STAGES[stage] != STAGES[than]


#: Kinds of signatures that say little about what failed.
VAGUE = frozenset({"other", "hang"})


class Gives(StrEnum):
    """`fault`: no verdict, another attempt, by another node. `later`: the same, by any node after a while. `out`: as a
    fault, and the node is taken out. `own day`: another attempt with dependencies as of the commit. `refused`: nothing
    can be judged by such a request."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    FAULT = "fault"
    LATER = "later"
    OUT = "out"
    OWN_DAY = "own day"
    REFUSED = "refused"


@dataclass(frozen=True)
class Wanted:
    """The failure looked for, as the bad end shows it. `stage`: in which phase. `probe`: the one that showed it, which
    is judged by itself."""

    signature: Signature | None
    stage: str
    probe: str = ""
    #: It was the check, or the script, that said so.
    told: bool = False
    timed_out: bool = False
    #: Of a build that has no signature.
    first_error: str | None = None
    #: Signs that the failure itself shows.
    signs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """All that a ruling stands on. `wanted`: None until the bad end was judged. `faults`: of earlier attempts.

    `own_day`: it was run with dependencies as of its own commit.
    """

    outcome: Outcome
    request: Request
    wanted: Wanted | None = None
    faults: tuple[Fault, ...] = ()
    own_day: bool = False
    #: Signs that runs of this bisection show which pass: they say nothing here.
    harmless: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ruling:
    """`kind`: of the fault or of the problem."""

    gives: Gives
    reason: str
    kind: str = ""
    advice: str = ""

    @property
    def judgement(self) -> Judgement:
        """Where no other attempt will be made: what gives no verdict is no evidence."""
        verdict = Verdict(self.gives) if self.gives in ("good", "bad", "skip") else Verdict.SKIP
        return Judgement(verdict, self.reason)


def skip(reason: str) -> Ruling:
    return Ruling(Gives.SKIP, reason)


def failed(outcome: Outcome) -> bool:
    if outcome.timed_out or outcome.out_of_memory or outcome.signal is not None:
        return True
    if outcome.ended_in in ("start", "ready"):
        return not (outcome.ended_in == "ready" and outcome.ready)
    return outcome.exit_status != 0


def what_failed(case: Case) -> str:
    """What failed, in the log's own words where there are any, and how it ended."""
    how = how_it_went(case)
    return f"{said(case.outcome.signature)} ({how})" if case.outcome.signature is not None else how


def said(signature: Signature) -> str:
    return signature.said or f"{signature.type}: {signature.message}"


def how_it_went(case: Case) -> str:
    how = how_it_ended(case.outcome)
    died = case.outcome.ended_in in ("start", "ready") and not case.outcome.timed_out
    return f"the server ended before it was ready: {how}" if died else how


def how_it_ended(outcome: Outcome) -> str:
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
