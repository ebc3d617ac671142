"""More to spend for a bisection, or less; one that ended since its budget was spent goes on."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

from service.application import reopen, wording
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Message
from service.domain.budget import Budget
from service.domain.errors import NotNow
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, moved
from service.domain.spending import without_rest


def extend(tx: Transaction, found: Bisection, budget: Budget, by: str, now: datetime) -> Bisection:
    """`budget`: as it shall be. The caller holds the lock, and lets it go on afterwards. Errors: NotNow."""
    if found.budget == budget:
        return found
    over = found.state not in LIVE_BISECTIONS
    if over and not wording.is_budget_spent(found):
        raise NotNow(
            f"bisection {found.id} has ended, and not for its budget: {found.state}",
            value=found.id,
            advice=f"read its answer with firstbad show {found.id}",
        )
    changed = replace(found, budget=budget, updated_at=now)
    tx.save_bisection(changed)
    tx.add_event(found.id, now, "budget changed", {"budget": asdict(budget), "was": asdict(found.budget), "by": by})
    if not over:
        return changed
    return reopen.reopened(tx, changed, now) if found.bad_sha is not None else _prepared_again(tx, changed, now)


def _prepared_again(tx: Transaction, found: Bisection, now: datetime) -> Bisection:
    """Its time was over before its commits were looked up."""
    rested = replace(without_rest(found, now), problem=None, updated_at=now)
    again = replace(rested, state=moved(found.state, BisectionState.QUEUED))
    tx.save_bisection(again)
    tx.add_event(found.id, now, "state", {"state": str(again.state)})
    tx.post(Message("prepare", f"prepare:{found.id}:{tx.last_event(found.id)}", {"id": found.id}), now)
    return again
