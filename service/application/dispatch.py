"""From a planned probe to an order under way: its build first, then the probe itself, by way of the outbox."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from service.application import builds, queues, turns
from service.application.cases import Wanted
from service.application.judge_builds import judge_build, judge_build_failure, judge_fault
from service.application.keys import Keys
from service.application.ports import Transaction
from service.application.verdicts import wanted_of
from service.domain.bisection import Bisection, Build, FailureIn, Probe, Request
from service.domain.evidence import Judgement
from service.domain.lifecycle import LIVE_BUILDS, BuildState, ProbeState, moved


def dispatch(tx: Transaction, bisection: Bisection, probe: Probe, keys: Keys | None, now: datetime) -> Probe:
    """A planned probe's next move: queued when it needs no wheel (no keys) or has one, else its build is asked for."""
    if keys is None:
        return queue_probe(tx, probe, now)
    build = builds.ask(tx, bisection, probe.sha, keys, now)
    waiting = replace(probe, build_key=build.key)
    if build.state not in LIVE_BUILDS:
        return after_build(tx, waiting, build, now)
    waiting = replace(waiting, state=moved(waiting.state, ProbeState.BUILDING))
    tx.save_probe(waiting)
    return waiting


def rebuild(tx: Transaction, probe: Probe, now: datetime) -> Probe:
    """The probe's wheel is gone or damaged in the store: it is built again, and the probe waits for it."""
    build = builds.locked(tx, probe.build_key or "")
    if build is None:
        raise ValueError(f"probe {probe.id} was sent without a build")
    if _made_since(build, probe):
        return queue_probe(tx, probe, now)
    place = builds.Place(probe.turn, probe.asked_at or now, probe.held)
    if build.state in LIVE_BUILDS:
        # Begun for another one, who may be paused, or who comes later.
        build = builds.wanted_at(tx, build, place, now)
    else:
        build = builds.start(tx, builds.placed(replace(build, ahead=False, faults=(), notes=()), place), now)
    waiting = replace(probe, state=moved(probe.state, ProbeState.BUILDING), started_at=None, leased_at=None, node=None)
    if build.state not in LIVE_BUILDS:
        return after_build(tx, waiting, build, now)
    tx.save_probe(waiting)
    return waiting


def _made_since(build: Build, probe: Probe) -> bool:
    """The wheel that is there now is not the one that the probe missed."""
    made, sent = build.finished_at, probe.queued_at
    return build.state is BuildState.BUILT and made is not None and sent is not None and made > sent


def after_build(tx: Transaction, probe: Probe, build: Build, now: datetime) -> Probe:
    """What a probe does once its build has ended: it is queued, or judged by the build itself."""
    request = tx.bisection(probe.bisection_id).request
    if build.state is BuildState.BUILT and request.failure_in is FailureIn.RUN:
        return queue_probe(tx, probe, now)
    if build.state is BuildState.BUILT:
        return give_verdict(tx, replace(probe, node=build.node), ProbeState.JUDGED, judge_build(), now)
    if build.state is BuildState.FAILED and build.failure is not None:
        ended = replace(probe, outcome=build.failure, node=build.node)
        judgement = judge_build_failure(build.failure, request, build.notes, _wanted(tx, probe, request))
        return give_verdict(tx, ended, ProbeState.JUDGED, judgement, now)
    if build.state is BuildState.FAULTED:
        judgement = judge_fault(build.faults)
        return give_verdict(tx, replace(probe, faults=build.faults), ProbeState.FAULTED, judgement, now)
    raise ValueError(f"build {build.key} has not ended: {build.state}")


def _wanted(tx: Transaction, probe: Probe, request: Request) -> Wanted | None:
    if request.failure_in is FailureIn.RUN:
        return None
    bisection = tx.bisection(probe.bisection_id)
    return wanted_of(bisection, [other for other in tx.probes(bisection.id) if other.id != probe.id])


def give_verdict(tx: Transaction, probe: Probe, state: ProbeState, judgement: Judgement, now: datetime) -> Probe:
    """The end of a probe, with all that is told of it."""
    ended = replace(probe, state=moved(probe.state, state), verdict=judgement.verdict, reason=judgement.reason)
    ended = replace(ended, finished_at=now)
    tx.save_probe(ended)
    data: dict[str, object] = {"probe": probe.id, "sha": probe.sha, "verdict": str(judgement.verdict or "")}
    tx.add_event(probe.bisection_id, now, "verdict", {**data, "reason": judgement.reason})
    return ended


def queue_probe(tx: Transaction, probe: Probe, now: datetime, delay_s: float = 0.0) -> Probe:
    """A new attempt, which waits for its turn: whatever an older one still reports is stale from here on."""
    fresh = replace(probe, state=moved(probe.state, ProbeState.QUEUED), attempt=probe.attempt + 1, queued_at=now)
    fresh = replace(fresh, due_at=now + timedelta(seconds=delay_s) if delay_s else None, sent_at=None)
    queued = replace(fresh, started_at=None, leased_at=None, silent_since=None, node=None, queue=_queue(tx, probe))
    tx.save_probe(queued)
    return queued


def _queue(tx: Transaction, probe: Probe) -> str:
    """Its bisection is read only where it is needed: this happens for each probe."""
    if probe.target is not None:
        return queues.of_node(probe.target)
    return probe.queue if queues.node_of(probe.queue) is None else turns.queue_of(tx.bisection(probe.bisection_id))
