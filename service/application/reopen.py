"""A bisection that goes on after its end, or that looks at its ends once more."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.application.ports import Transaction
from service.domain.bisection import Bisection
from service.domain.errors import NotNow
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, moved
from service.domain.spending import without_rest

#: Ends that stand on verdicts.
ON_VERDICTS = frozenset({BisectionState.FOUND, BisectionState.SUSPECTS, BisectionState.REFUSED})
#: Problems of one that failed, that are the nodes' and may be over.
_OF_NODES = ("fault-", "unfit-environment", "lost-end")


def check_may_go_on(found: Bisection) -> None:
    """Errors: NotNow."""
    if found.state in LIVE_BISECTIONS or found.state in ON_VERDICTS or _met_faults(found):
        return
    raise NotNow(
        f"bisection {found.id} has ended and cannot go on: {found.state}",
        value=found.id,
        advice=f"begin another one like it with firstbad clone {found.id}",
    )


def _met_faults(found: Bisection) -> bool:
    problem = found.problem
    return found.state is BisectionState.FAILED and problem is not None and problem.slug.startswith(_OF_NODES)


def reopened(tx: Transaction, found: Bisection, now: datetime, *, ends: bool = False) -> Bisection:
    """Its answer is taken back, and all that it stands on is looked at anew; one that lives is left as it is, unless
    its `ends` are to be looked at. Nothing happens to what is not prepared. The caller holds its lock."""
    waits = found.state in (BisectionState.QUEUED, BisectionState.PREPARING, BisectionState.CHECKING_ENDS)
    if waits or (found.state in LIVE_BISECTIONS and not ends):
        return found
    rested = without_rest(found, now) if found.state not in LIVE_BISECTIONS else found
    again = replace(rested, answer=None, problem=None, updated_at=now)
    again = replace(again, state=moved(found.state, BisectionState.CHECKING_ENDS))
    tx.save_bisection(again)
    tx.add_event(found.id, now, "state", {"state": str(again.state)})
    return again
