"""Carries a bisection as far as its evidence allows. Idempotent: done twice, the second time finds nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from service.application import cancel
from service.application.dispatch import dispatch
from service.application.plan import Step, Wanted, step
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Probe
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, ProbeState, moved
from service.search.graph import Range

ADVANCING = frozenset({BisectionState.CHECKING_ENDS, BisectionState.SEARCHING, BisectionState.CONFIRMING})


def advance(tx: Transaction, bisection: Bisection, range_: Range, now: datetime) -> Bisection:
    """Takes steps until one leaves nothing to do but wait. The caller holds the bisection's lock."""
    while bisection.state in ADVANCING:
        probes = tx.probes(bisection.id)
        taken = step(bisection, probes, range_)
        bisection = _take(tx, bisection, probes, taken, now)
        if taken.state is None and not _judged_at_once(tx, bisection, probes, taken):
            break
    return bisection


def _take(tx: Transaction, bisection: Bisection, probes: Sequence[Probe], taken: Step, now: datetime) -> Bisection:
    for probe in taken.worthless:
        cancel.probe(tx, probe, now, "its answer is known already")
    for offset, wanted in enumerate(taken.wanted, start=1):
        dispatch(tx, bisection, _planned(tx, bisection, probes, wanted, len(probes) + offset, now), now)
    changed = _changed(bisection, taken, now)
    if changed != bisection:
        tx.save_bisection(changed)
    if changed.state is not bisection.state:
        tx.add_event(bisection.id, now, "state", {"state": str(changed.state)})
    return changed


def _planned(
    tx: Transaction, bisection: Bisection, probes: Sequence[Probe], wanted: Wanted, number: int, now: datetime
) -> Probe:
    trial = 1 + sum(probe.sha == wanted.sha and probe.state is not ProbeState.CANCELLED for probe in probes)
    id = f"{bisection.id}.{number}"
    probe = Probe(id, bisection.id, number, wanted.sha, trial, wanted.purpose, ProbeState.PLANNED, now)
    tx.add_probe(probe)
    tx.add_event(bisection.id, now, "planned", {"probe": id, "sha": wanted.sha, "purpose": str(wanted.purpose)})
    return probe


def _changed(bisection: Bisection, taken: Step, now: datetime) -> Bisection:
    left, expected = taken.candidates_left, taken.expected_probes
    state = moved(bisection.state, taken.state) if taken.state is not None else bisection.state
    changed = replace(
        bisection,
        state=state,
        candidates_left=left if left is not None else bisection.candidates_left,
        expected_probes=expected if expected is not None else bisection.expected_probes,
        answer=taken.answer or bisection.answer,
        problem=taken.problem or bisection.problem,
        ended_at=None if state in LIVE_BISECTIONS else now,
    )
    return replace(changed, updated_at=now) if changed != bisection else bisection


def _judged_at_once(tx: Transaction, bisection: Bisection, before: Sequence[Probe], taken: Step) -> bool:
    """A commit known not to build is skipped in the moment it is planned, so there is more to do now."""
    if not taken.wanted:
        return False
    return any(probe.state is ProbeState.JUDGED for probe in tx.probes(bisection.id)[len(before) :])
