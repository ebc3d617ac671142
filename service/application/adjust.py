"""Another priority or another budget for a bisection, or both at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from service.application import allowed, pause
from service.application.extend import extend
from service.application.ports import Transaction
from service.domain.access import Caller
from service.domain.bisection import Bisection
from service.domain.budget import Budget, Priority
from service.domain.policy import CallerPolicy

#: All of a budget.
LIMITS = frozenset(field.name for field in fields(Budget))


@dataclass(frozen=True)
class Change:
    """`limits`: of a budget, those that are given; the others stay."""

    priority: Priority | None = None
    asked: Budget = Budget()
    limits: frozenset[str] = frozenset()

    def budget(self, found: Bisection) -> Budget:
        """As it shall be."""
        return replace(found.budget, **{name: getattr(self.asked, name) for name in self.limits})


def adjust(
    tx: Transaction, found: Bisection, change: Change, caller: Caller, policies: Sequence[CallerPolicy], now: datetime
) -> Bisection:
    """All of it or nothing. The caller holds the lock, and lets it go on afterwards. Errors: NotAllowed; NotNow."""
    if change.limits:
        budget = change.budget(found)
        allowed.may_spend(budget, found.request, caller, policies)
        found = extend(tx, found, budget, caller.name, now)
    if change.priority is not None:
        allowed.may_prioritize(change.priority, caller, policies)
        found = pause.prioritize(tx, found, change.priority, caller.name, now)
    return found
