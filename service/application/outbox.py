"""What goes out: posted in the transaction of its cause, sent after it, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from service.application import notices
from service.application.measure import cards_of
from service.application.orders import Composer
from service.application.ports import Ports, Transaction
from service.application.queues import BUILD, PICKY, node_of
from service.domain.bisection import Build, Message, Probe
from service.domain.lifecycle import BisectionState, BuildState, ProbeState

#: What is to be sent within so long of the transaction's beginning is sent at its end; the sweep sends the rest.
AT_ONCE = timedelta(seconds=1)


@dataclass(frozen=True)
class Posted:
    """A message with all that sending it needs; sending does nothing when its cause is over."""

    message: Message
    send: Callable[[Ports], None]
    bisection: str = ""

    @property
    def about(self) -> dict[str, str]:
        """The ids of what it is about, and its topic."""
        topic, payload = self.message.topic, {name: str(value) for name, value in self.message.payload.items()}
        kind, id = payload.get("kind", topic), payload.get("id", "")
        found = {"topic": topic, "bisection": self.bisection or (id.rpartition(".")[0] if kind == "probe" else "")}
        if kind in ("probe", "build"):
            found |= {kind: id, "attempt": payload["attempt"]}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True)
class Recorder:
    """A transaction that remembers what was posted in it to be sent at once, and in which queues something waits now or
    a slot became free; everything else is the transaction's."""

    tx: Transaction
    began: datetime
    posted: list[Message] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    _queues: dict[str, str] = field(default_factory=dict)

    def post(self, message: Message, at: datetime) -> None:
        self.tx.post(message, at)
        if at <= self.began + AT_ONCE:
            self.posted.append(message)

    def add_event(self, bisection_id: str, at: datetime, kind: str, data: dict[str, object]) -> None:
        """What webhooks are told of it waits for the control worker."""
        self.tx.add_event(bisection_id, at, kind, data)
        if kind == "state":
            for notice in notices.of_state(self.tx, bisection_id, str(data["state"]), at):
                self.tx.post(notice, at)

    def probe(self, id: str, *, lock: bool = False) -> Probe:
        found = self.tx.probe(id, lock=lock)
        self._queues.setdefault(id, found.queue)
        return found

    def save_probe(self, probe: Probe) -> None:
        self.tx.save_probe(probe)
        begun = probe.state is ProbeState.RUNNING or (probe.state is ProbeState.QUEUED and probe.sent_at is not None)
        if not begun and not (probe.state is ProbeState.BUILDING and not probe.attempt):
            queues = {probe.queue, self._queues.get(probe.id, probe.queue)}
            self.touched.update(queues)
            if any(node_of(queue) is not None for queue in queues):
                # What waits for a node with certain labels or models is sent to it by its name.
                self.touched.update(queue for queue in self.tx.waiting_queues() if queue.startswith(PICKY))

    def save_build(self, build: Build) -> None:
        self.tx.save_build(build)
        waits = build.state in (BuildState.QUEUED, BuildState.WAITING) and build.sent_at is None
        if waits or (build.finished_at is not None and build.finished_at >= self.began):
            self.touched.add(BUILD)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)


def compose(tx: Transaction, message: Message) -> Posted:
    """Reads what the message is about; the repository is read when it is sent, which is outside of the transaction."""
    payload = message.payload
    match message.topic:
        case "prepare":
            id = str(payload["id"])
            return Posted(message, lambda ports: ports.queue.send_prepare(id), id)
        case "survey":
            return Posted(message, _survey(tx, str(payload["id"]), payload["attempt"]), str(payload["id"]))
        case "build":
            bisection, send = _build(tx, str(payload["id"]), payload["attempt"])
            return Posted(message, send, bisection)
        case "probe":
            return Posted(message, _probe(tx, str(payload["id"]), payload["attempt"]))
        case "cancel":
            kind, id, attempt = str(payload["kind"]), str(payload["id"]), int(str(payload["attempt"]))
            return Posted(message, lambda ports: ports.queue.cancel(kind, id, attempt))
        case "node":
            return Posted(message, _node(tx, str(payload["node"])))
        case "remove":
            return Posted(message, lambda ports: ports.artifacts.remove(str(payload["path"])))
    raise ValueError(f"nothing sends {message.topic!r}")


def _survey(tx: Transaction, id: str, attempt: object) -> Callable[[Ports], None]:
    bisection = tx.bisection(id)
    if bisection.state is not BisectionState.PREPARING or bisection.setup.survey.attempt != attempt:
        return _nothing
    return lambda ports: ports.queue.send_survey(Composer(bisection, ports.history).survey())


def _build(tx: Transaction, key: str, attempt: object) -> tuple[str, Callable[[Ports], None]]:
    """With the bisection that it is made for."""
    build = tx.build(key)
    if build is None or build.attempt != attempt or build.state is not BuildState.QUEUED or build.sent_at is None:
        return "", _nothing
    bisection = tx.bisection(build.bisection_id)
    base = tx.build(build.base_key) if build.base_key is not None else None
    usable = base if base is not None and base.state is BuildState.BUILT else None
    return bisection.id, lambda ports: ports.queue.send_build(Composer(bisection, ports.history).build(build, usable))


def _probe(tx: Transaction, id: str, attempt: object) -> Callable[[Ports], None]:
    probe = tx.probe(id)
    if probe.attempt != attempt or probe.state is not ProbeState.QUEUED or probe.sent_at is None:
        return _nothing
    bisection = tx.bisection(probe.bisection_id)
    build = tx.build(probe.build_key) if probe.build_key else None
    measured = bisection.request.metric is not None and probe.target is not None
    cards = cards_of(tx.probes(bisection.id), probe.target or "") if measured else ()
    return lambda ports: ports.queue.send_probe(Composer(bisection, ports.history).probe(probe, build, cards))


def _node(tx: Transaction, name: str) -> Callable[[Ports], None]:
    """As it stands now: what was posted may be older than what was said since."""
    found = tx.node(name)
    return lambda ports: ports.queue.take_out(name, out=found is not None and bool(found.out))


def _nothing(ports: Ports) -> None:
    """Its cause is over: there is nothing left to send."""
