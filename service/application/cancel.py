"""Stopping what runs: a whole bisection at a person's word, or one probe that became worthless."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.application import builds, turns
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Probe
from service.domain.errors import NotNow
from service.domain.lifecycle import (
    LIVE_BISECTIONS,
    LIVE_PROBES,
    BisectionState,
    ProbeState,
    moved,
)


def bisection(tx: Transaction, found: Bisection, by: str, now: datetime) -> Bisection:
    """Errors: NotNow when it has ended otherwise."""
    if found.state is BisectionState.CANCELLED:
        return found
    if found.state not in LIVE_BISECTIONS:
        raise NotNow(
            f"bisection {found.id} has ended already: {found.state}",
            value=found.id,
            advice=f"read its answer with firstbad show {found.id}",
        )
    builds.lock_those_of(tx, found.id)
    for live in tx.probes(found.id):
        if live.state in LIVE_PROBES:
            probe(tx, live, now, f"cancelled by {by}")
    builds.release_ahead(tx, found.id, frozenset(), now)
    state = moved(found.state, BisectionState.CANCELLED)
    cancelled = replace(found, state=state, updated_at=now, ended_at=now)
    tx.save_bisection(cancelled)
    tx.add_event(found.id, now, "state", {"state": str(cancelled.state), "by": by})
    return cancelled


def probe(tx: Transaction, live: Probe, now: datetime, reason: str) -> Probe:
    # The build first, as a build that ends does: two that lock in another order may wait for each other.
    if live.build_key is not None:
        builds.locked(tx, live.build_key)
    live = tx.probe(live.id, lock=True)
    if live.state not in LIVE_PROBES:
        return live
    spent = charged(tx, live, now)
    ended = replace(spent, state=moved(live.state, ProbeState.CANCELLED), finished_at=now, reason=reason)
    tx.save_probe(ended)
    if live.sent_at is not None and live.state in (ProbeState.QUEUED, ProbeState.RUNNING):
        turns.stop(tx, "probe", live.id, live.attempt, now)
    if live.state is ProbeState.BUILDING and live.build_key is not None:
        builds.release(tx, live.build_key, now)
    return ended


def charged(tx: Transaction, probe: Probe, until: datetime) -> Probe:
    """With the time that its cards were held by an attempt of which nothing will be heard that counts."""
    if probe.state is not ProbeState.RUNNING or probe.leased_at is None:
        return probe
    cards = tx.bisection(probe.bisection_id).request.recipe.resources.gpus
    seconds = max((until - probe.leased_at).total_seconds(), 0.0)
    return replace(probe, gpu_leased_s=probe.gpu_leased_s + cards * seconds)
