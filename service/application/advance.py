"""Carries a bisection as far as its evidence allows. Idempotent: done twice, the second time finds nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from service.application import budgets, builds, cancel, nodes, turns, wording
from service.application.dispatch import dispatch
from service.application.forecast import Fleet, Forecast, forecast, with_room
from service.application.keys import Scope
from service.application.measuring import Measured
from service.application.moves import Step, Wanted, stopped
from service.application.plan import step
from service.application.ports import Transaction
from service.application.verdicts import clues, derive, numbers_of, refusal
from service.domain.bisection import Bisection, Probe
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, ProbeState, moved
from service.domain.spending import spent

ADVANCING = frozenset({BisectionState.CHECKING_ENDS, BisectionState.SEARCHING, BisectionState.CONFIRMING})


def advance(tx: Transaction, bisection: Bisection, scope: Scope, ahead: int, now: datetime) -> bool:
    """Takes steps until one leaves nothing to do but wait. The caller holds the bisection's lock.

    `ahead`: builds that may be under way at most before a probe wants them. False: the failure looked for is known only
    now, or another one than the scope was read for, and the search needs a scope that leads to it.
    """
    while bisection.state in ADVANCING:
        searching = bisection.state is not BisectionState.CHECKING_ENDS
        probes = derive(tx, bisection, now, scope.range if searching else None)
        if bisection.state is BisectionState.SEARCHING and clues(bisection, probes) != scope.lead.clues:
            return False
        taken = _refused(bisection, probes) or _step(tx, bisection, probes, scope, ahead, now)
        bisection = _take(tx, bisection, probes, taken, scope, now)
        if taken.state is None and not (scope.keys and _judged_at_once(tx, bisection, probes, taken)):
            break
    return True


def _step(
    tx: Transaction, bisection: Bisection, probes: Sequence[Probe], scope: Scope, ahead: int, now: datetime
) -> Step:
    """Within the budget; while it is paused, nothing new."""
    measured = _measured(tx, bisection, probes, now)
    wished = step(bisection, probes, scope, _forecast(tx, bisection, scope, probes, ahead, now), measured)
    taken = budgets.within(bisection, probes, scope, wished, measured, now)
    if taken.state is not wished.state:
        tx.add_event(bisection.id, now, "budget", {"spent": asdict(spent(bisection, probes, now))})
    return taken if bisection.paused_at is None else replace(taken, wanted=(), ahead=())


def _refused(bisection: Bisection, probes: Sequence[Probe]) -> Step | None:
    problem = refusal(bisection, probes)
    return stopped(BisectionState.REFUSED, problem, probes) if problem is not None else None


def _measured(tx: Transaction, bisection: Bisection, probes: Sequence[Probe], now: datetime) -> Measured | None:
    numbers = numbers_of(bisection, probes)
    if numbers is None:
        return None
    first = nodes.first_of(probes)
    return Measured(numbers, nodes.alike(tx, bisection, first, now) if first is not None else ())


def _forecast(
    tx: Transaction, bisection: Bisection, scope: Scope, probes: Sequence[Probe], ahead: int, now: datetime
) -> Forecast:
    if not scope.keys:
        return Forecast()
    coming = tx.coming(bisection.id)
    found = forecast(tx.stock(bisection.request.repo), coming, probes, bisection.id)
    if not ahead:
        return found
    there = tx.nodes()
    fleet = Fleet(there, coming, tx.at_work(sum(node.slots for node in there), bisection.id))
    return with_room(found, fleet, bisection.id, ahead, now)


def _take(
    tx: Transaction, bisection: Bisection, probes: Sequence[Probe], taken: Step, scope: Scope, now: datetime
) -> Bisection:
    if scope.keys:
        builds.lock(tx, [scope.keys[sha] for sha in _wheels(taken) if sha in scope.keys], tx.builds_ahead(bisection.id))
    for probe in taken.worthless:
        cancel.probe(tx, probe, now, "its answer is known already")
    for offset, wanted in enumerate(taken.wanted, start=1):
        probe = planned(tx, bisection, probes, wanted, len(probes) + offset, now)
        dispatch(tx, bisection, probe, scope.keys.get(wanted.sha), now)
    changed = _changed(bisection, taken, now)
    # On the way from one state to the next, and while it is paused, nothing is said of builds ahead: those go on.
    speaks = taken.state is None and bisection.paused_at is None
    if scope.keys and (speaks or changed.state not in ADVANCING):
        _build_ahead(tx, bisection, taken.ahead, scope, now)
    if changed != bisection:
        tx.save_bisection(changed)
    if changed.state is not bisection.state:
        tx.add_event(bisection.id, now, "state", {"state": str(changed.state)})
    return changed


def _wheels(taken: Step) -> Iterator[str]:
    """The commits whose builds a step touches."""
    yield from (wanted.sha for wanted in taken.wanted)
    yield from (probe.sha for probe in taken.worthless)
    yield from taken.ahead


def _build_ahead(tx: Transaction, bisection: Bisection, shas: Sequence[str], scope: Scope, now: datetime) -> None:
    keys = {sha: scope.keys[sha] for sha in shas}
    builds.release_ahead(tx, bisection.id, frozenset(key.content for key in keys.values()), now)
    for sha, key in keys.items():
        builds.ask(tx, bisection, sha, key, now, ahead=True)


def planned(
    tx: Transaction, bisection: Bisection, probes: Sequence[Probe], wanted: Wanted, number: int, now: datetime
) -> Probe:
    trial = 1 + sum(probe.sha == wanted.sha and probe.state is not ProbeState.CANCELLED for probe in probes)
    id = f"{bisection.id}.{number}"
    state, target = ProbeState.PLANNED, wanted.target
    probe = Probe(id, bisection.id, number, wanted.sha, trial, wanted.purpose, state, now, target=target)
    probe = replace(probe, queue=turns.queue_of(bisection), turn=turns.turn_of(bisection))
    probe = replace(probe, asked_at=bisection.created_at, held=bisection.paused_at is not None)
    tx.add_probe(probe)
    tx.add_event(bisection.id, now, "planned", {"probe": id, "sha": wanted.sha, "purpose": str(wanted.purpose)})
    return probe


def _changed(bisection: Bisection, taken: Step, now: datetime) -> Bisection:
    left, expected = taken.candidates_left, taken.expected_probes
    state = moved(bisection.state, taken.state) if taken.state is not None else bisection.state
    changed = replace(
        bisection,
        state=state,
        notes=wording.noted(bisection.notes, taken.note),
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
