"""What goes out: posted in the transaction of its cause, sent after it, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from service.application.dispatch import build_order, probe_order
from service.application.ports import History, ProbeQueue, Transaction
from service.domain.bisection import Message
from service.domain.lifecycle import BuildState, ProbeState

#: What is to be sent within so long of the transaction's beginning is sent at its end; the sweep sends the rest.
AT_ONCE = timedelta(seconds=1)


@dataclass(frozen=True)
class Posted:
    """A message with all that sending it needs; sending does nothing when its cause is over."""

    message: Message
    send: Callable[[ProbeQueue], None]


@dataclass(frozen=True)
class Recorder:
    """A transaction that remembers what was posted in it to be sent at once; everything else is the transaction's."""

    tx: Transaction
    began: datetime
    posted: list[Message] = field(default_factory=list)

    def post(self, message: Message, at: datetime) -> None:
        self.tx.post(message, at)
        if at <= self.began + AT_ONCE:
            self.posted.append(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)


def compose(tx: Transaction, message: Message, history: History) -> Posted:
    payload = message.payload
    match message.topic:
        case "prepare":
            return Posted(message, lambda queue: queue.send_prepare(str(payload["id"])))
        case "build":
            return Posted(message, _build(tx, history, str(payload["id"]), payload["attempt"]))
        case "probe":
            return Posted(message, _probe(tx, history, str(payload["id"]), payload["attempt"]))
        case "cancel":
            kind, id, attempt = str(payload["kind"]), str(payload["id"]), int(str(payload["attempt"]))
            return Posted(message, lambda queue: queue.cancel(kind, id, attempt))
    raise ValueError(f"nothing sends {message.topic!r}")


def _build(tx: Transaction, history: History, key: str, attempt: object) -> Callable[[ProbeQueue], None]:
    build = tx.build(key)
    if build is None or build.attempt != attempt or build.state is not BuildState.QUEUED:
        return _nothing
    order = build_order(build, tx.bisection(build.bisection_id), history.mirror(build.repo))
    return lambda queue: queue.send_build(order)


def _probe(tx: Transaction, history: History, id: str, attempt: object) -> Callable[[ProbeQueue], None]:
    probe = tx.probe(id)
    if probe.attempt != attempt or probe.state is not ProbeState.QUEUED:
        return _nothing
    bisection = tx.bisection(probe.bisection_id)
    build = tx.build(probe.build_key) if probe.build_key else None
    order = probe_order(probe, bisection, build, history.mirror(bisection.request.repo))
    return lambda queue: queue.send_probe(order)


def _nothing(queue: ProbeQueue) -> None:
    """Its cause is over: there is nothing left to send."""
