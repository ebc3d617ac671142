"""The way to the workers: orders over Celery, and what Redis knows of each attempt (sent, leased, to be cancelled)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from service.application.ordered import (
    BaseOrder,
    BuildOrder,
    ProbeOrder,
    SourceOrder,
    SurveyOrder,
)
from service.application.ports import Attempt, QueueUnavailable
from service.domain.metric import Metric
from worker import contract
from worker.contract import Queue, Task

#: An order that no worker took for so long is looked for again.
SENT_S = 3600
CANCEL_S = 24 * 3600
#: A worker that was down for longer sends a result once more.
DONE_S = 24 * 3600
ASKED_AT_ONCE = 1000
#: Of Redis's transport: what stands between a queue's name and a priority.
PRIORITY = "\x06\x16"

#: Seconds for which workers believe what version the service said it has; each sweep says it again.
VERSION_S = 600


def sender(redis_url: str) -> Celery:
    """A Celery application that only sends."""
    app = Celery("firstbad", broker=redis_url, set_as_current=False)
    app.conf.update(task_serializer="json", accept_content=["json"], task_ignore_result=True)
    app.conf.update(
        broker_transport_options={
            "socket_connect_timeout": 5,
            "socket_timeout": 10,
            "priority_steps": [contract.NOW, contract.AHEAD],
        }
    )
    return app


class CeleryQueue:
    """Implements the ProbeQueue port."""

    def __init__(self, redis_url: str, traceparent: Callable[[], str] = str) -> None:
        """`traceparent`: of the span under way, empty where there is none."""
        self._app = sender(redis_url)
        self._traceparent = traceparent
        self._redis = redis.Redis.from_url(redis_url, socket_connect_timeout=5, socket_timeout=10)

    def send_prepare(self, bisection_id: str) -> None:
        self._send(Task.PREPARE, Queue.CONTROL, bisection_id, contract.sent_key("prepare", bisection_id, 0))

    def send_survey(self, order: SurveyOrder) -> None:
        key = contract.sent_key("survey", order.bisection, order.attempt)
        message = contract.SurveyOrder(bisection=order.bisection, attempt=order.attempt, sandbox=_sandbox(order))
        self._send(Task.SURVEY, Queue.BUILD, message.model_dump(mode="json"), key)

    def send_build(self, order: BuildOrder) -> None:
        key = contract.sent_key("build", order.key, order.attempt)
        priority = contract.AHEAD if order.ahead else contract.NOW
        self._send(Task.BUILD, Queue.BUILD, _build(order).model_dump(mode="json"), key, priority)

    def send_probe(self, order: ProbeOrder) -> None:
        key = contract.sent_key("probe", order.probe, order.attempt)
        self._send(Task.PROBE, _queue(order), _probe(order).model_dump(mode="json"), key)

    def take_out(self, node: str, *, out: bool) -> None:
        with _unavailable():
            if out:
                self._redis.set(contract.out_key(node), "1")
            else:
                self._redis.delete(contract.out_key(node))

    def say_version(self) -> None:
        """For the workers, who tell when theirs is another one. Errors: QueueUnavailable."""
        with _unavailable():
            self._redis.set(contract.SERVICE_KEY, str(contract.VERSION), ex=VERSION_S)

    def cancel(self, kind: str, id: str, attempt: int) -> None:
        """Its order may be lost: nobody else would take the mark away that it was sent."""
        with _unavailable(), self._redis.pipeline(transaction=False) as pipe:
            pipe.set(contract.cancel_key(kind, id, attempt), "1", ex=CANCEL_S)
            pipe.delete(contract.sent_key(kind, id, attempt))
            pipe.execute()

    def done(self, attempt: Attempt) -> None:
        """Lets the worker forget its result. Errors: QueueUnavailable."""
        with _unavailable():
            self._redis.set(contract.done_key(*attempt), "1", ex=DONE_S)

    def under_way(self, attempts: Collection[Attempt]) -> frozenset[Attempt]:
        """In one round trip for each thousand of them, and one more for the queues that they were sent to.

        What was sent to a queue that is empty, and has no lease, was lost on its way to a worker.
        """
        asked, found = list(attempts), set[Attempt]()
        sent: dict[Attempt, str] = {}
        for start in range(0, len(asked), ASKED_AT_ONCE):
            some = asked[start : start + ASKED_AT_ONCE]
            with _unavailable(), self._redis.pipeline(transaction=False) as pipe:
                for each in some:
                    pipe.exists(contract.lease_key(*each))
                    pipe.get(contract.sent_key(*each))
                told = pipe.execute()
            found.update(each for each, leased in zip(some, told[::2], strict=True) if leased)
            sent.update({each: name.decode() for each, name in zip(some, told[1::2], strict=True) if name})
        filled = self._filled(set(sent.values()))
        return frozenset(found | {each for each, name in sent.items() if name in filled})

    def _filled(self, queues: set[str]) -> set[str]:
        """Those in which something waits, at any priority."""
        names = [(queue, name) for queue in queues for name in (queue, f"{queue}{PRIORITY}{contract.AHEAD}")]
        if not names:
            return set()
        with _unavailable(), self._redis.pipeline(transaction=False) as pipe:
            for _, name in names:
                pipe.llen(name)
            return {queue for (queue, _), length in zip(names, pipe.execute(), strict=True) if length}

    def trouble(self) -> str | None:
        try:
            self._redis.ping()
        except redis.RedisError as error:
            return f"the broker does not answer: {error}"
        return None

    @contextmanager
    def preparing(self, bisection_id: str) -> Iterator[None]:
        """Holds the lease of a preparation while it runs in this process."""
        ended = threading.Event()
        key = contract.lease_key("prepare", bisection_id, 0)
        self._renew(key)
        self._redis.delete(contract.sent_key("prepare", bisection_id, 0))
        keeper = threading.Thread(target=self._keep, args=(key, ended), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            self._redis.delete(key)

    def _keep(self, key: str, ended: threading.Event) -> None:
        while not ended.wait(contract.RENEW_S):
            with suppress(QueueUnavailable):
                self._renew(key)

    def _renew(self, key: str) -> None:
        with _unavailable():
            self._redis.set(key, "1", ex=contract.LEASE_S)

    def _send(self, task: Task, queue: str, payload: object, sent_key: str, priority: int = contract.NOW) -> None:
        """The mark first: should we die between the two, the outbox still holds the message."""
        if isinstance(payload, dict):
            payload = {**payload, "trace": self._traceparent()}
        with _unavailable():
            self._redis.set(sent_key, str(queue), ex=SENT_S)
            self._app.send_task(
                str(task),
                args=[payload],
                queue=str(queue),
                ignore_result=True,
                retry=False,
                priority=priority,
                # Made for monitors of Celery, by walking through the whole order.
                argsrepr="",
                kwargsrepr="",
            )


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, OperationalError, OSError) as error:
        raise QueueUnavailable(str(error)) from error


def _build(order: BuildOrder) -> contract.BuildOrder:
    return contract.BuildOrder(
        key=order.key,
        attempt=order.attempt,
        source=_source(order.source),
        command=order.command,
        env=order.env,
        sandbox=_sandbox(order),
        limits=contract.Limits(timeout_s=order.timeout_s),
        package=order.package,
        indexes=order.indexes,
        base=_base(order.base) if order.base else None,
        overlay_command=order.overlay_command,
        failure=order.failure,
        project=order.project,
    )


def _queue(order: ProbeOrder) -> str:
    if order.target is not None:
        return contract.node_queue(order.target)
    return contract.gpu_queue(order.gpu_class) if order.gpu_class is not None else Queue.PROBE


def _probe(order: ProbeOrder) -> contract.ProbeOrder:
    return contract.ProbeOrder(
        bisection=order.bisection,
        probe=order.probe,
        attempt=order.attempt,
        source=_source(order.source),
        wheel=order.wheel,
        wheel_sha256=order.wheel_sha256,
        dependencies=contract.Dependencies.model_validate(asdict(order.dependencies)) if order.dependencies else None,
        reproduction=contract.Reproduction.model_validate(asdict(order.reproduction)),
        env=order.env,
        sandbox=_sandbox(order),
        limits=_limits(order),
        wheel_key=order.wheel_key,
        control=contract.Reproduction.model_validate(asdict(order.control)) if order.control else None,
        metrics=tuple(map(_metric, order.metrics)),
        warmup=order.warmup,
        gpus=_gpus(order),
        secrets=order.secrets,
        model_cache=str(order.model_cache),
        project=order.project,
    )


def _metric(metric: Metric) -> contract.Metric:
    return contract.Metric(
        name=metric.name,
        pattern=metric.pattern,
        json_path=metric.json_path,
        csv=contract.Column(name=metric.csv.name, where=metric.csv.where) if metric.csv is not None else None,
        unit=metric.unit,
        unit_path=metric.unit_path,
        aggregate=metric.aggregate.value if metric.aggregate is not None else None,
    )


def _gpus(order: ProbeOrder) -> contract.Gpus | None:
    if order.gpu_class is None:
        return None
    return contract.Gpus(count=order.resources.gpus, model=order.gpu_class, indexes=order.cards)


def _limits(order: ProbeOrder) -> contract.Limits:
    wanted = order.resources
    limits = contract.Limits(
        timeout_s=order.timeout_s,
        memory_bytes=wanted.memory_bytes,
        shm_bytes=wanted.shm_bytes,
        cpus=wanted.cpus,
        cpuset=wanted.cpuset,
        numa=wanted.numa,
    )
    return limits if wanted.pids is None else limits.model_copy(update={"pids": wanted.pids})


def _source(source: SourceOrder) -> contract.Source:
    fixups = tuple(
        contract.Fixup(name=patch.name, cherry_pick=patch.cherry_pick, patch=patch.patch) for patch in source.fixups
    )
    return contract.Source(repo=source.repo, sha=source.sha, mirror=source.mirror, fixups=fixups)


def _base(base: BaseOrder) -> contract.Base:
    return contract.Base(source=_source(base.source), wheel=base.wheel, wheel_sha256=base.wheel_sha256)


def _sandbox(order: BuildOrder | ProbeOrder | SurveyOrder) -> contract.Sandbox:
    made: dict[str, Any] = asdict(order.sandbox)
    return contract.Sandbox.model_validate(made)
