"""Finds what fell between: dispatched but nowhere under way, or running on a node that says nothing any more.

A missing lease must stay missing for SILENCE_S before it counts, so that a broker's restart is no massacre.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from service.application import budgets, builds, nodes, survey, turns, wording
from service.application.advance import ADVANCING
from service.application.cancel import charged
from service.application.dispatch import queue_probe
from service.application.ports import ProbeQueue, Transaction
from service.application.queues import BUILD
from service.application.record import probe_started, release, retry_build, retry_probe
from service.application.waiting import Limited
from service.domain.bisection import Bisection, Build, Message, Probe
from service.domain.errors import NotFound
from service.domain.evidence import Fault
from service.domain.lifecycle import LIVE_BUILDS, BisectionState, BuildState, ProbeState, moved
from service.domain.spending import spent

SILENCE_S = 30.0
_LOST = Fault("lost", "the node stopped answering while it ran", "see whether the node is up, and its worker's log")
_RESTARTED = Fault("restarted", "the node's worker was restarted while it ran", "see the worker's log")
_IN_FLIGHT = (ProbeState.QUEUED, ProbeState.RUNNING)
UNPREPARED = (BisectionState.QUEUED, BisectionState.PREPARING)


@dataclass(frozen=True, order=True)
class Ticket:
    """One attempt at something that the queue or a node should have; `silent`: it was missing the last time."""

    kind: str
    id: str
    attempt: int
    silent: bool = False


def carried(tx: Transaction) -> frozenset[Ticket]:
    """All that should be under way now; what waits for its turn is not."""
    sent = {Ticket(out.kind, out.id, out.attempt, out.silent) for out in tx.all_out()}
    # Never under way by themselves: what they wait for has ended in a way that told nobody.
    waiting = {Ticket("build", stuck.id, stuck.attempt) for stuck in tx.stuck()}
    unprepared = {_of_preparation(found) for found in tx.unchanged(UNPREPARED, limit=1000)}
    return frozenset(sent | waiting | unprepared)


def to_go_on(tx: Transaction, limited: Collection[Limited], now: datetime) -> frozenset[str]:
    """Bisections that may have something to do though nothing happened to them: those that a crash left without a live
    probe, those whose budget may be spent by time alone, and those that may build ahead when builders have nothing to
    do."""
    timed = {one.id for one in limited if one.gpu_s is not None or one.past}
    slots = tx.slots(BUILD, now - nodes.SILENT) or 0
    free = 0 if tx.lines(BUILD, now) else max(slots - sum(tx.out(BUILD).values()), 0)
    return frozenset({*tx.idle(ADVANCING), *timed, *tx.building(ADVANCING, free)})


def end_unprepared(tx: Transaction, id: str, now: datetime) -> None:
    """One whose time is over before it could begin; those that have begun end by their next step."""
    found = tx.bisection(id, lock=True)
    so_far = spent(found, (), now)
    if found.state not in UNPREPARED or not budgets.over(found.budget, so_far):
        return
    state, problem = moved(found.state, BisectionState.CANCELLED), wording.budget_spent(found.budget, so_far)
    tx.save_bisection(replace(found, state=state, problem=problem, updated_at=now, ended_at=now))
    tx.add_event(id, now, "budget", {"spent": asdict(so_far)})
    tx.add_event(id, now, "state", {"state": str(state)})


def _of_preparation(bisection: Bisection) -> Ticket:
    asked = bisection.setup.survey
    if not survey.asked(bisection) or bisection.setup.builder is not None:
        return Ticket("prepare", bisection.id, 0)
    return Ticket("survey", bisection.id, asked.attempt, asked.silent_since is not None)


def missing(tickets: Collection[Ticket], queue: ProbeQueue) -> frozenset[Ticket]:
    """Those that neither the queue nor a node has. Outside of any transaction: it asks the broker."""
    there = queue.under_way([(each.kind, each.id, each.attempt) for each in tickets])
    return frozenset(each for each in tickets if (each.kind, each.id, each.attempt) not in there)


def put_back(tx: Transaction, ticket: Ticket, gone: bool, now: datetime) -> frozenset[str]:
    """Notes the silence or its end, and puts back what was silent for too long. Returns the bisections that may go on.

    One ticket a transaction: what locks several probes in its own order may wait for one that locks them in another.
    """
    if ticket.kind == "probe":
        return frozenset(_probe(tx, ticket, gone, now))
    if ticket.kind == "build":
        return frozenset(_build(tx, ticket, gone, now))
    if ticket.kind == "survey":
        _survey(tx, ticket, gone, now)
    elif gone:
        _prepare_again(tx, ticket, now)
    return frozenset()


def _probe(tx: Transaction, ticket: Ticket, gone: bool, now: datetime) -> set[str]:
    probe = tx.probe(ticket.id, lock=True)
    if probe.attempt != ticket.attempt or probe.state not in _IN_FLIGHT or probe.sent_at is None:
        return set()
    silent = _silent_since(probe, gone, now)
    if _too_long(silent, now):
        _put_back_probe(tx, probe, now)
        return {probe.bisection_id}
    if silent != probe.silent_since:
        tx.save_probe(replace(probe, silent_since=silent))
    return set()


def _put_back_probe(tx: Transaction, probe: Probe, now: datetime) -> None:
    """A message that was lost is no fault; a run that was lost is the node's.

    It is another attempt in both cases: a worker may have taken this one and died before it could say so, and no other
    takes it then. Should that one be back after all, its run is not wanted any more.
    """
    turns.stop(tx, "probe", probe.id, probe.attempt, now)
    if probe.state is ProbeState.QUEUED:
        queue_probe(tx, probe, now)
    else:
        spent = charged(tx, probe, probe.silent_since or now)
        retry_probe(tx, spent, replace(_LOST, node=probe.node or ""), now)


def send_elsewhere(tx: Transaction, found: Probe, now: datetime) -> None:
    """What is queued for a node that takes none goes to any other; a number to one of the same hardware alone."""
    probe = tx.probe(found.id, lock=True)
    if probe.state is not ProbeState.QUEUED or probe.attempt != found.attempt:
        return
    bisection = tx.bisection(probe.bisection_id)
    measured = nodes.measured_on(tx, bisection)
    if measured is None:
        queue_probe(tx, replace(probe, target=None), now)
    elif (comparable := nodes.alike(tx, bisection, measured, now)) and probe.target not in comparable:
        queue_probe(tx, replace(probe, target=comparable[0]), now)


def _build(tx: Transaction, ticket: Ticket, gone: bool, now: datetime) -> set[str]:
    build = builds.locked(tx, ticket.id)
    if build is None or build.attempt != ticket.attempt or build.state not in LIVE_BUILDS:
        return set()
    if build.state is BuildState.WAITING:
        return _waiting(tx, build, now)
    if build.sent_at is None:
        return set()
    silent = _silent_since(build, gone, now)
    if _too_long(silent, now) and build.state is BuildState.RUNNING:
        return set(retry_build(tx, build, _LOST, now))
    if _too_long(silent, now):
        # As with probes: whoever took it may be dead.
        turns.stop(tx, "build", build.key, build.attempt, now)
        builds.queue(tx, build, now)
    elif silent != build.silent_since:
        tx.save_build(replace(build, silent_since=silent))
    return set()


def _waiting(tx: Transaction, build: Build, now: datetime) -> set[str]:
    started = builds.start(tx, build, now)
    return set() if started.state in LIVE_BUILDS else {started.bisection_id, *release(tx, started, now)}


def _survey(tx: Transaction, ticket: Ticket, gone: bool, now: datetime) -> None:
    found = tx.bisection(ticket.id, lock=True)
    asked = found.setup.survey
    if found.state is not BisectionState.PREPARING or asked.attempt != ticket.attempt:
        return
    silent = (asked.silent_since or now) if gone else None
    if _too_long(silent, now):
        survey.ask(tx, found, now, asked.faults)
    elif silent != asked.silent_since:
        changed = replace(found.setup, survey=replace(asked, silent_since=silent))
        tx.save_bisection(replace(found, setup=changed))


def _prepare_again(tx: Transaction, ticket: Ticket, now: datetime) -> None:
    found = tx.bisection(ticket.id)
    if found.state in UNPREPARED and _too_long(found.updated_at, now):
        tx.save_bisection(replace(found, updated_at=now))
        # The time makes it another message than the one that was lost.
        tx.post(Message("prepare", f"prepare:{ticket.id}:{now.isoformat()}", {"id": ticket.id}), now)


def _silent_since(thing: Probe | Build, gone: bool, now: datetime) -> datetime | None:
    return (thing.silent_since or now) if gone else None


def _too_long(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since > timedelta(seconds=SILENCE_S)


def running_on(tx: Transaction, node: str) -> tuple[Ticket, ...]:
    """What is said to run there."""
    probes = [Ticket("probe", p.id, p.attempt) for p in tx.probes_in((ProbeState.RUNNING,)) if p.node == node]
    builds = [Ticket("build", b.key, b.attempt) for b in tx.builds_in((BuildState.RUNNING,)) if b.node == node]
    return (*probes, *builds)


def booted(tx: Transaction, node: str, adopted: frozenset[tuple[str, str, int]], now: datetime) -> tuple[Ticket, ...]:
    """What the node's last life left and its new one does not go on with. `adopted`: kind, id and attempt, also of what
    has ended and only waits to be recorded."""
    for kind, id, attempt in sorted(adopted):
        if kind == "probe":
            # That it had begun may not have been told before the worker died. Of what it has a result, perhaps since
            # long, the probe may not even be there.
            with suppress(NotFound):
                probe_started(tx, id, attempt, node, now)
    running = {(found.kind, found.id, found.attempt): found for found in running_on(tx, node)}
    for kind, id, attempt in sorted(adopted - running.keys()):
        # Given up while the node was away: its run is not wanted any more.
        turns.stop(tx, kind, id, attempt, now)
    return tuple(running[key] for key in sorted(running.keys() - adopted))


def give_back(tx: Transaction, ticket: Ticket, now: datetime) -> frozenset[str]:
    """A worker that has just booted runs nothing: what its last life left is put back at once."""
    if ticket.kind == "build":
        build = builds.locked(tx, ticket.id)
        if build is None or build.attempt != ticket.attempt or build.state is not BuildState.RUNNING:
            return frozenset()
        return retry_build(tx, build, _RESTARTED, now)
    probe = tx.probe(ticket.id, lock=True)
    if probe.attempt != ticket.attempt or probe.state is not ProbeState.RUNNING:
        return frozenset()
    retry_probe(tx, charged(tx, probe, now), replace(_RESTARTED, node=probe.node or ""), now)
    return frozenset({probe.bisection_id})
