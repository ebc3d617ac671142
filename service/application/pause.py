"""Holding a bisection for a while, letting it go on, and having it go before others or after them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.application.ports import Transaction
from service.domain.bisection import Bisection
from service.domain.budget import Priority
from service.domain.errors import NotNow
from service.domain.lifecycle import LIVE_BISECTIONS


def pause(tx: Transaction, found: Bisection, by: str, now: datetime) -> Bisection:
    """Nothing new is begun for it until it is resumed. Errors: NotNow when it has ended."""
    _check_live(found, "paused")
    if found.paused_at is not None:
        return found
    paused = replace(found, paused_at=now, updated_at=now)
    tx.save_bisection(paused)
    tx.add_event(found.id, now, "paused", {"by": by})
    return paused


def resume(tx: Transaction, found: Bisection, by: str, now: datetime) -> Bisection:
    """Errors: NotNow when it has ended."""
    _check_live(found, "resumed")
    if found.paused_at is None:
        return found
    seconds = (now - found.paused_at).total_seconds()
    resumed = replace(found, paused_at=None, paused_s=found.paused_s + seconds, updated_at=now)
    tx.save_bisection(resumed)
    tx.add_event(found.id, now, "resumed", {"by": by, "after_s": seconds})
    return resumed


def prioritize(tx: Transaction, found: Bisection, priority: Priority, by: str, now: datetime) -> Bisection:
    """Errors: NotNow when it has ended."""
    _check_live(found, "given another priority")
    if found.priority is priority:
        return found
    changed = replace(found, priority=priority, updated_at=now)
    tx.save_bisection(changed)
    tx.add_event(found.id, now, "priority", {"priority": str(priority), "was": str(found.priority), "by": by})
    return changed


def _check_live(found: Bisection, done: str) -> None:
    if found.state not in LIVE_BISECTIONS:
        raise NotNow(
            f"bisection {found.id} cannot be {done}, it has ended: {found.state}",
            value=found.id,
            advice=f"read its answer with firstbad show {found.id}",
        )
