"""From a planned probe to an order under way: its build first, then the probe itself, by way of the outbox."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from service.application.judge import judge_build_failure
from service.application.ports import BuildOrder, ProbeOrder, SandboxOrder, SourceOrder, Transaction
from service.domain.bisection import Bisection, Build, Message, Probe, Request
from service.domain.evidence import Judgement
from service.domain.lifecycle import LIVE_BUILDS, BuildState, ProbeState, moved
from service.domain.recipe import Network, SandboxKind

T = TypeVar("T", Probe, Build)


def build_key(request: Request, sha: str) -> str:
    """The same for all requests whose wheel of this commit would be the same."""
    recipe = request.recipe
    image = recipe.image if request.sandbox is SandboxKind.DOCKER else None
    parts = [request.repo, sha, recipe.build_command, request.sandbox, image, sorted(recipe.env.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def dispatch(tx: Transaction, bisection: Bisection, probe: Probe, now: datetime) -> Probe:
    """A planned probe's next move: queued when it needs no wheel or has one, else its build is asked for."""
    if bisection.request.recipe.build_command is None:
        return queue_probe(tx, probe, now)
    key = build_key(bisection.request, probe.sha)
    build = tx.build(key, lock=True)
    waiting = replace(probe, build_key=key)
    if build is None or _to_be_built_anew(build, bisection):
        queue_build(tx, replace(build or _new_build(bisection, probe.sha, key, now), bisection_id=bisection.id), now)
    elif build.state not in LIVE_BUILDS:
        return after_build(tx, waiting, build, now)
    waiting = replace(waiting, state=moved(waiting.state, ProbeState.BUILDING))
    tx.save_probe(waiting)
    return waiting


def _to_be_built_anew(build: Build, bisection: Bisection) -> bool:
    """A failure is believed by the bisection that saw it; to the next one it may have been the network's that day."""
    if build.state is BuildState.FAILED:
        return build.bisection_id != bisection.id
    return build.state in (BuildState.FAULTED, BuildState.CANCELLED)


def rebuild(tx: Transaction, probe: Probe, now: datetime) -> Probe:
    """The probe's wheel is gone or damaged in the store: it is built again, and the probe waits for it."""
    build = tx.build(probe.build_key or "", lock=True)
    if build is not None and build.state is BuildState.BUILT:
        queue_build(tx, build, now)
    waiting = replace(probe, state=moved(probe.state, ProbeState.BUILDING), started_at=None, node=None)
    tx.save_probe(waiting)
    return waiting


def after_build(tx: Transaction, probe: Probe, build: Build, now: datetime) -> Probe:
    """What a probe does once its build has ended: it is queued, or skipped, or shares the build's faults."""
    if build.state is BuildState.BUILT:
        return queue_probe(tx, probe, now)
    if build.state is BuildState.FAILED and build.failure is not None:
        ended = replace(probe, outcome=build.failure, node=build.node)
        return give_verdict(tx, ended, ProbeState.JUDGED, judge_build_failure(build.failure), now)
    raise ValueError(f"build {build.key} has not ended: {build.state}")


def give_verdict(tx: Transaction, probe: Probe, state: ProbeState, judgement: Judgement, now: datetime) -> Probe:
    """The end of a probe, with all that is told of it."""
    ended = replace(probe, state=moved(probe.state, state), verdict=judgement.verdict, reason=judgement.reason)
    ended = replace(ended, finished_at=now)
    tx.save_probe(ended)
    data: dict[str, object] = {"probe": probe.id, "sha": probe.sha, "verdict": str(judgement.verdict)}
    tx.add_event(probe.bisection_id, now, "verdict", {**data, "reason": judgement.reason})
    return ended


def queue_probe(tx: Transaction, probe: Probe, now: datetime, delay_s: float = 0.0) -> Probe:
    queued = _new_attempt(replace(probe, state=moved(probe.state, ProbeState.QUEUED)), now)
    tx.save_probe(queued)
    _order(tx, "probe", queued.id, queued.attempt, now + timedelta(seconds=delay_s))
    return queued


def queue_build(tx: Transaction, build: Build, now: datetime, delay_s: float = 0.0) -> Build:
    queued = _new_attempt(replace(build, state=moved(build.state, BuildState.QUEUED)), now)
    tx.save_build(queued)
    _order(tx, "build", queued.key, queued.attempt, now + timedelta(seconds=delay_s))
    return queued


def _new_attempt(thing: T, now: datetime) -> T:
    """Whatever an older attempt still reports is stale from here on."""
    return replace(thing, attempt=thing.attempt + 1, queued_at=now, started_at=None, silent_since=None, node=None)


def _order(tx: Transaction, topic: str, id: str, attempt: int, at: datetime) -> None:
    tx.post(Message(topic, f"{topic}:{id}:{attempt}", {"id": id, "attempt": attempt}), at)


def _new_build(bisection: Bisection, sha: str, key: str, now: datetime) -> Build:
    return Build(key, BuildState.QUEUED, bisection.request.repo, sha, bisection.id, now)


def build_order(build: Build, bisection: Bisection, mirror: str) -> BuildOrder:
    request, recipe = bisection.request, bisection.request.recipe
    return BuildOrder(
        key=build.key,
        attempt=build.attempt,
        source=SourceOrder(request.repo, mirror, build.sha),
        command=recipe.build_command or "",
        env=_env(request, build.sha),
        sandbox=SandboxOrder(request.sandbox, recipe.image, recipe.build_network),
        timeout_s=recipe.build_timeout_s,
    )


def probe_order(probe: Probe, bisection: Bisection, build: Build | None, mirror: str) -> ProbeOrder:
    request, recipe = bisection.request, bisection.request.recipe
    return ProbeOrder(
        bisection=bisection.id,
        probe=probe.id,
        attempt=probe.attempt,
        source=SourceOrder(request.repo, mirror, probe.sha),
        wheel=build.wheel_path if build else None,
        wheel_sha256=build.wheel_sha256 if build else None,
        dependencies=None,
        reproduction=request.reproduction,
        env=_env(request, probe.sha),
        sandbox=SandboxOrder(request.sandbox, recipe.image, Network(recipe.network)),
        timeout_s=request.timeout_s,
    )


def _env(request: Request, sha: str) -> dict[str, str]:
    return {name: value.replace("{sha}", sha) for name, value in request.recipe.env.items()}
