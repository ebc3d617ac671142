"""Facts that come in from workers: kept when they belong to the attempt under way, else noted as stale.

Each function returns the ids of the bisections that may go on from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from service.application import builds, nodes
from service.application.cases import Gives
from service.application.dispatch import after_build, give_verdict, queue_probe, rebuild
from service.application.judge_builds import judge_fault
from service.application.nodes import OTHER_VERSION, REFUSED
from service.application.ports import Transaction
from service.application.verdicts import ruling_of
from service.domain.bisection import Build, Probe
from service.domain.evidence import Fault, Outcome
from service.domain.lifecycle import LIVE_BUILDS, BuildState, ProbeState, moved
from service.domain.results import BuildReport, ProbeReport, WheelFacts

#: So many faults of a probe or a build, and it is given up.
MAX_FAULTS = 3
#: Seconds before the next attempt, by how many faults there were: what is down for a moment may be back by then.
RETRY_AFTER_S = (5.0, 20.0)
#: The same where what it needs is away for everyone, as a server that is asked too often.
LATER_S = (30.0, 120.0)
#: A node as a whole has it, until somebody or something has mended it.
OF_NODE = frozenset({"engine"})
#: The node is gone, or was: another attempt need not wait for it to mend.
AT_ONCE = frozenset({"stopped", "lost", "restarted", "lost-base"})
#: The store has lost a wheel that was built: only building it again helps.
LOST_WHEEL = frozenset({"missing-wheel", "damaged-wheel"})
#: A wheel's base is gone or damaged in the store: it is put together from another one, or built.
LOST_BASE = "lost-base"
#: An operator's stop says nothing about the probe, and there are only so many bases to lose. A node that speaks another
#: version may be upgraded, or another one does it: until then there is nothing to give up.
NOT_COUNTED = frozenset({"stopped", "lost-base", OTHER_VERSION})
_UNFIT = REFUSED - NOT_COUNTED
#: So many refusals of nodes that are not fit count as one fault.
REFUSALS = 10
_IN_FLIGHT = (ProbeState.QUEUED, ProbeState.RUNNING)
_IN_WORK = (BuildState.QUEUED, BuildState.RUNNING)


def probe_started(tx: Transaction, id: str, attempt: int, node: str, now: datetime, *, leased: bool = False) -> None:
    """`leased`: it holds its GPUs. Of the two messages that say so the second may be read first."""
    probe = tx.probe(id, lock=True)
    if probe.attempt != attempt or probe.state not in _IN_FLIGHT:
        return
    leased_at = now if leased and probe.leased_at is None else probe.leased_at
    if probe.state is ProbeState.QUEUED:
        begun = replace(probe, state=ProbeState.RUNNING, node=node, started_at=now, silent_since=None)
        tx.save_probe(replace(begun, leased_at=leased_at))
        tx.add_event(probe.bisection_id, now, "started", {"probe": id, "node": node, "attempt": attempt})
    elif leased_at != probe.leased_at:
        tx.save_probe(replace(probe, leased_at=leased_at))


def build_started(tx: Transaction, key: str, attempt: int, node: str, now: datetime) -> None:
    build = tx.build(key, lock=True)
    if build is None or build.attempt != attempt or build.state is not BuildState.QUEUED:
        return
    tx.save_build(replace(build, state=BuildState.RUNNING, node=node, started_at=now, silent_since=None))
    tx.add_event(build.bisection_id, now, "build started", {"build": key, "sha": build.sha, "node": node})


def probe_ended(tx: Transaction, report: ProbeReport, now: datetime) -> bool:
    """True when it changed something. The caller holds the lock of the probe's bisection."""
    probe = tx.probe(report.probe, lock=True)
    if probe.attempt != report.attempt or probe.state not in _IN_FLIGHT:
        # What is recorded already may come again.
        if probe.attempt != report.attempt or probe.state is ProbeState.CANCELLED:
            stale: dict[str, object] = {"probe": probe.id, "attempt": report.attempt, "node": report.node}
            tx.add_event(probe.bisection_id, now, "stale", stale)
            _forget_logs(tx, probe, report.outcome, now)
        return False
    leased, used = _of_gpus(tx, probe, report, now)
    probe = replace(probe, node=report.node, started_at=probe.started_at or now)
    probe = replace(probe, gpu_leased_s=probe.gpu_leased_s + leased, gpu_used_s=probe.gpu_used_s + used)
    if report.fault is not None:
        retry_probe(tx, probe, replace(report.fault, node=report.node), now)
    elif report.outcome is not None:
        _observed(tx, probe, report.outcome, now)
    return True


def _forget_logs(tx: Transaction, probe: Probe, dropped: Outcome | None, now: datetime) -> None:
    """Those of an outcome that is not kept, which may have been kept before: nobody would find them in the store."""
    kept = {path for outcome in (probe.outcome, *(fault.outcome for fault in probe.faults)) for path in _logs(outcome)}
    for path in _logs(dropped):
        if path not in kept:
            builds.remove(tx, path, now)


def _logs(outcome: Outcome | None) -> Iterator[str]:
    """Of the run and of its control."""
    while outcome is not None:
        if outcome.log is not None:
            yield outcome.log.path
        outcome = outcome.control


def _of_gpus(tx: Transaction, probe: Probe, report: ProbeReport, now: datetime) -> tuple[float, float]:
    """What this attempt held and used, as its node says, as far as that can be: so many cards, since it was sent."""
    cards, since = tx.bisection(probe.bisection_id).request.recipe.resources.gpus, probe.sent_at or now
    leased = min(max(report.gpu_leased_s, 0.0), cards * max((now - since).total_seconds(), 0.0))
    return leased, min(max(report.gpu_used_s, 0.0), leased)


def _observed(tx: Transaction, probe: Probe, outcome: Outcome, now: datetime) -> None:
    """The verdict, or another attempt where the outcome shows that it was not the commit's doing."""
    ruled, judgement = ruling_of(tx.bisection(probe.bisection_id), tx.probes(probe.bisection_id), probe, outcome)
    if ruled.gives is Gives.OWN_DAY:
        data: dict[str, object] = {"probe": probe.id, "sha": probe.sha, "reason": ruled.reason}
        tx.add_event(probe.bisection_id, now, "own day", data)
        _forget_logs(tx, probe, outcome, now)
        queue_probe(tx, replace(probe, own_day=True), now)
    elif ruled.gives in (Gives.FAULT, Gives.LATER, Gives.OUT):
        fault = Fault(ruled.kind, ruled.reason, ruled.advice, probe.node or "", outcome)
        if ruled.gives is Gives.OUT and probe.node is not None and not _seen_elsewhere(tx, probe, ruled.kind):
            nodes.take_out(tx, probe.node, ruled.reason, now)
            tx.add_event(probe.bisection_id, now, "node out", {"node": probe.node, "reason": ruled.reason})
        retry_probe(tx, probe, fault, now, later=ruled.gives is Gives.LATER)
    else:
        give_verdict(tx, replace(probe, outcome=outcome), ProbeState.JUDGED, judgement, now)


def _seen_elsewhere(tx: Transaction, probe: Probe, kind: str) -> bool:
    """Two nodes do not break in the same way under one bisection: then it is what runs there."""
    faults = (fault for other in tx.probes(probe.bisection_id) for fault in other.faults)
    return any(fault.kind == kind and fault.node not in ("", probe.node) for fault in faults)


def retry_probe(tx: Transaction, probe: Probe, fault: Fault, now: datetime, *, later: bool = False) -> None:
    """A new attempt, by another node where there is one, or the end after MAX_FAULTS.

    `later`: what it needs is away for every node, and may be back after a while.
    """
    faults = with_fault(probe.faults, fault)
    if len(faults) > len(probe.faults):
        data: dict[str, object] = {"probe": probe.id, "kind": fault.kind, "message": fault.message}
        tx.add_event(probe.bisection_id, now, "fault", data)
    if not spent(faults) and fault.kind in LOST_WHEEL and probe.build_key is not None:
        rebuild(tx, replace(probe, faults=faults), now)
    elif not spent(faults):
        target = None if later else nodes.another(tx, probe, faults, now)
        if target is None and nodes.measured_on(tx, tx.bisection(probe.bisection_id)) is not None:
            target = probe.target
        seconds = LATER_S[min(counted(faults), len(LATER_S)) - 1] if later else delay_s(faults)
        queue_probe(tx, replace(probe, faults=faults, target=target), now, seconds)
    else:
        _give_up(tx, replace(probe, faults=faults), now)


def _give_up(tx: Transaction, probe: Probe, now: datetime) -> None:
    give_verdict(tx, probe, ProbeState.FAULTED, judge_fault(probe.faults), now)


def with_fault(faults: tuple[Fault, ...], fault: Fault) -> tuple[Fault, ...]:
    """A node that speaks another version says so each time that it is first to take it: that is kept once."""
    others = faults if fault.kind != OTHER_VERSION else tuple(other for other in faults if other != fault)
    return (*others, fault)


def spent(faults: tuple[Fault, ...]) -> bool:
    """Whether there is no use in another attempt: so many of one kind, or twice as many of any; refusals are one."""
    kinds = Counter(fault.kind for fault in faults if fault.kind not in NOT_COUNTED | REFUSED)
    refused = sum(fault.kind in _UNFIT for fault in faults) // REFUSALS
    return counted(faults) >= 2 * MAX_FAULTS or max((refused, *kinds.values())) >= MAX_FAULTS


def counted(faults: tuple[Fault, ...]) -> int:
    """How many speak against another attempt. Nodes that refuse count little: they are always the first to be free."""
    refused = sum(fault.kind in _UNFIT for fault in faults)
    return sum(fault.kind not in NOT_COUNTED | REFUSED for fault in faults) + refused // REFUSALS


def delay_s(faults: tuple[Fault, ...]) -> float:
    """Seconds until the next attempt."""
    last = faults[-1]
    if last.kind == OTHER_VERSION:
        return RETRY_AFTER_S[-1]
    if last.kind in OF_NODE and any((other.kind, other.node) == (last.kind, last.node) for other in faults[:-1]):
        return LATER_S[-1]
    return 0.0 if last.kind in AT_ONCE else RETRY_AFTER_S[min(max(counted(faults), 1), len(RETRY_AFTER_S)) - 1]


def build_ended(tx: Transaction, report: BuildReport, now: datetime) -> frozenset[str]:
    """The bisections whose probes waited for it. A build is one row for all of them, so its own lock is taken here."""
    build = builds.locked(tx, report.key)
    if build is None or build.attempt != report.attempt or build.state not in _IN_WORK:
        _throw_away(tx, report, build, now)
        return frozenset()
    build = replace(build, node=report.node, seconds=report.seconds, log=report.log)
    build = replace(build, origin=report.origin, notes=report.notes)
    if report.fault is not None:
        return retry_build(tx, build, report.fault, now)
    if report.wheel is not None:
        if build.wheel_path not in (None, report.wheel.path):
            builds.remove(tx, build.wheel_path or "", now)
        ended = _built(build, report.wheel, now)
    else:
        ended = replace(build, state=moved(build.state, BuildState.FAILED), failure=report.failure, finished_at=now)
    return release(tx, ended, now)


def _throw_away(tx: Transaction, report: BuildReport, build: Build | None, now: datetime) -> None:
    """The wheel of an attempt that does not count would lie in the store for ever."""
    if report.wheel is not None and (build is None or build.wheel_path != report.wheel.path):
        builds.remove(tx, report.wheel.path, now)


def _built(build: Build, wheel: WheelFacts, now: datetime) -> Build:
    return replace(
        build,
        state=moved(build.state, BuildState.BUILT),
        finished_at=now,
        wheel_name=wheel.name,
        wheel_path=wheel.path,
        wheel_sha256=wheel.sha256,
        wheel_bytes=wheel.bytes,
    )


def retry_build(tx: Transaction, build: Build, fault: Fault, now: datetime) -> frozenset[str]:
    """A new attempt; after MAX_FAULTS the probes that wait for it are given up with its faults."""
    faults = with_fault(build.faults, replace(fault, node=fault.node or build.node or ""))
    build = replace(build, faults=faults)
    if fault.kind == LOST_BASE and build.base_key is not None:
        builds.lose(tx, build.base_key, now)
    if build.ahead and tx.bisection(build.bisection_id).paused_at is not None:
        # A pause gives up what was to be made ahead; what ran was to end by itself.
        builds.cancel(tx, build, now)
        return frozenset()
    if not spent(faults):
        again = builds.start(tx, build, now, delay_s(faults))
        return frozenset() if again.state in LIVE_BUILDS else release(tx, again, now)
    return release(tx, replace(build, state=moved(build.state, BuildState.FAULTED), finished_at=now), now)


def release(tx: Transaction, build: Build, now: datetime) -> frozenset[str]:
    """Keeps the end of a build, and lets go on what waited for it, be it probes or builds."""
    touched: set[str] = set()
    for over in (build, *builds.ended(tx, build, now)):
        # What was built ahead makes room for the next one.
        touched |= {over.bisection_id} if over.ahead else set()
        for probe in tx.probes_of_build(over.key):
            touched.add(probe.bisection_id)
            _go_on(tx, probe, over, now)
    return frozenset(touched)


def _go_on(tx: Transaction, probe: Probe, build: Build, now: datetime) -> None:
    after_build(tx, probe, build, now)
    data: dict[str, object] = {"build": build.key, "sha": build.sha, "state": str(build.state)}
    tx.add_event(probe.bisection_id, now, "build ended", {**data, "origin": str(build.origin or "")})
