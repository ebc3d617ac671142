"""Holding a bisection for a while, letting it go on, and having it go before others or after them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.application import builds, turns
from service.application.dispatch import queue_probe
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Build, Probe
from service.domain.budget import Priority
from service.domain.errors import NotNow
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_PROBES, BuildState, ProbeState


def pause(tx: Transaction, found: Bisection, by: str, now: datetime) -> Bisection:
    """Nothing new is begun for it until it is resumed: what was sent and has not begun is taken back. The caller holds
    its lock. Errors: NotNow when it has ended."""
    _check_live(found, "paused")
    if found.paused_at is not None:
        return found
    paused = replace(found, paused_at=now, updated_at=now)
    tx.save_bisection(paused)
    back = _stand(tx, paused, now)
    for build in tx.builds_ahead(found.id):
        if build.state is not BuildState.RUNNING:
            builds.release(tx, build.key, now)
    tx.add_event(found.id, now, "paused", {"by": by, "taken_back": back})
    return paused


def resume(tx: Transaction, found: Bisection, by: str, now: datetime) -> Bisection:
    """Errors: NotNow when it has ended."""
    _check_live(found, "resumed")
    if found.paused_at is None:
        return found
    seconds = (now - found.paused_at).total_seconds()
    resumed = replace(found, paused_at=None, paused_s=found.paused_s + seconds, updated_at=now)
    tx.save_bisection(resumed)
    _stand(tx, resumed, now)
    tx.add_event(found.id, now, "resumed", {"by": by, "after_s": seconds})
    return resumed


def prioritize(tx: Transaction, found: Bisection, priority: Priority, by: str, now: datetime) -> Bisection:
    """Errors: NotNow when it has ended."""
    _check_live(found, "given another priority")
    if found.priority is priority:
        return found
    changed = replace(found, priority=priority, updated_at=now)
    tx.save_bisection(changed)
    _stand(tx, changed, now)
    for build in tx.builds_ahead(found.id):
        _stand_ahead(tx, changed, build)
    tx.add_event(found.id, now, "priority", {"priority": str(priority), "was": str(found.priority), "by": by})
    return changed


def _stand(tx: Transaction, bisection: Bisection, now: datetime) -> int:
    """Puts all that is live of it, and the builds that it waits for, where the bisection stands now; how many probes
    were taken back from the queue. As with a cancel, builds are locked before the probes that wait for them."""
    builds.lock_those_of(tx, bisection.id)
    back = 0
    for probe in tx.probes(bisection.id):
        if probe.state not in LIVE_PROBES:
            continue
        build = builds.locked(tx, probe.build_key) if probe.build_key is not None else None
        back += _stand_probe(tx, bisection, tx.probe(probe.id, lock=True), build, now)
    return back


def _stand_probe(tx: Transaction, bisection: Bisection, probe: Probe, build: Build | None, now: datetime) -> int:
    """1 when it was taken back."""
    held = bisection.paused_at is not None
    placed = replace(probe, turn=turns.turn_of(bisection), held=held)
    if held and probe.state is ProbeState.QUEUED and probe.sent_at is not None:
        turns.stop(tx, "probe", probe.id, probe.attempt, now)
        queue_probe(tx, placed, now)
        return 1
    if placed != probe and probe.state in LIVE_PROBES:
        tx.save_probe(placed)
    if build is not None and probe.state is ProbeState.BUILDING:
        builds.stand(tx, build, now)
    return 0


def _stand_ahead(tx: Transaction, bisection: Bisection, found: Build) -> None:
    build = builds.locked(tx, found.key)
    if build is not None and build.ahead and build.bisection_id == bisection.id:
        tx.save_build(replace(build, turn=turns.turn_of(bisection, ahead=True)))


def _check_live(found: Bisection, done: str) -> None:
    if found.state not in LIVE_BISECTIONS:
        raise NotNow(
            f"bisection {found.id} cannot be {done}, it has ended: {found.state}",
            value=found.id,
            advice=f"read its answer with firstbad show {found.id}",
        )
