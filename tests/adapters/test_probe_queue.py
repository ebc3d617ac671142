"""The way to the workers on a real Redis: what lies in which queue, and what is known of an attempt."""

from __future__ import annotations

import base64
import json

import pytest

from service.adapters.probe_queue import CeleryQueue
from service.application.ordered import (
    BuildOrder,
    DependenciesOrder,
    ProbeOrder,
    SandboxOrder,
    SourceOrder,
)
from service.application.ports import (
    QueueUnavailable,
)
from service.domain.bisection import Reproduction, ResolvedFixup, Serve
from service.domain.recipe import BRIDGE, NO_NETWORK, SandboxKind
from tests.redis_server import Broker
from worker import contract
from worker.contract import Queue, Task

PATCH = ResolvedFixup("patch 1", "b" * 40, "c" * 40, patch="--- a/x\n")
SANDBOX = SandboxOrder(SandboxKind.PROCESS, None, NO_NETWORK)
PROBE = ProbeOrder(
    bisection="b1",
    probe="b1.1",
    attempt=2,
    source=SourceOrder("https://example.org/r.git", "/mirrors/r", "a" * 40, (PATCH,)),
    wheel="wheels/k/p-1-py3-none-any.whl",
    wheel_sha256="0" * 64,
    dependencies=DependenciesOrder("2025-09-25T00:00:00Z", "torch==2.8", BRIDGE),
    reproduction=Reproduction(serve=Serve("serve", ready_http="/health", within_s=5.0), check="true", failure="boom"),
    env={"A": "1"},
    sandbox=SANDBOX,
    timeout_s=60.0,
)
BUILD = BuildOrder(
    key="k",
    attempt=1,
    source=PROBE.source,
    command="make wheel",
    env={},
    sandbox=SANDBOX,
    timeout_s=60.0,
)


def taken(broker: Broker, queue: Queue) -> tuple[str, object]:
    """The task's name and its argument, as a Celery worker would get them."""
    message = json.loads(broker.client().rpop(str(queue)))
    arguments, _, _ = json.loads(base64.b64decode(message["body"]))
    return message["headers"]["task"], arguments[0]


def test_orders_arrive_whole_in_the_queue_of_their_kind(broker: Broker) -> None:
    queue = CeleryQueue(broker.url)
    queue.send_probe(PROBE)
    queue.send_build(BUILD)
    queue.send_prepare("b1")
    name, payload = taken(broker, Queue.PROBE)
    order = contract.ProbeOrder.model_validate(payload)
    assert (name, order.attempt, order.wheel, order.reproduction.failure) == (Task.PROBE, 2, PROBE.wheel, "boom")
    assert order.reproduction.serve is not None
    assert (order.reproduction.serve.ready_http, order.limits.timeout_s) == ("/health", 60.0)
    name, payload = taken(broker, Queue.BUILD)
    assert (name, contract.BuildOrder.model_validate(payload).command) == (Task.BUILD, "make wheel")
    assert taken(broker, Queue.CONTROL) == (Task.PREPARE, "b1")


def test_an_order_is_under_way_until_a_worker_took_it_and_while_its_lease_lives(broker: Broker) -> None:
    queue, client = CeleryQueue(broker.url), broker.client()
    assert not queue.under_way([("probe", "b1.1", 2)])
    queue.send_probe(PROBE)
    assert queue.under_way([("probe", "b1.1", 2)])
    assert not queue.under_way([("probe", "b1.1", 3)])
    client.delete(contract.sent_key("probe", "b1.1", 2))
    assert not queue.under_way([("probe", "b1.1", 2)])
    client.set(contract.lease_key("probe", "b1.1", 2), "1")
    assert queue.under_way([("probe", "b1.1", 2)])


def test_an_order_that_was_lost_on_its_way_to_a_worker_is_under_way_no_more(broker: Broker) -> None:
    """Redis gave it to a connection that broke: it is in no queue, and nobody has its lease."""
    queue, client = CeleryQueue(broker.url), broker.client()
    for name in ("build", "build\x06\x169"):
        client.set(contract.sent_key("build", "k1", 1), "build")
        client.lpush(name, "order")
        assert queue.under_way([("build", "k1", 1)])
        client.delete(name)
        assert not queue.under_way([("build", "k1", 1)])


def test_of_many_attempts_those_under_way_are_found_in_one_round_trip_for_each_thousand(broker: Broker) -> None:
    queue, client = CeleryQueue(broker.url), broker.client()
    attempts = [("probe", f"b{number}.1", number % 3) for number in range(2500)]
    under_way = {each for number, each in enumerate(attempts) if number % 7 == 0}
    client.mset({contract.lease_key(*each): "n1" for each in under_way})
    queue.under_way(attempts[:1])
    before = client.info("stats")["total_reads_processed"]
    assert queue.under_way(attempts) == under_way
    # Of what it sends at once the server may read a part at a time, but never so little as one question.
    assert client.info("stats")["total_reads_processed"] - before < len(attempts) / 10
    assert queue.under_way([]) == frozenset()


def test_a_cancel_leaves_the_mark_that_workers_watch(broker: Broker) -> None:
    CeleryQueue(broker.url).cancel("build", "k", 1)
    assert broker.client().exists(contract.cancel_key("build", "k", 1))


def test_a_cancel_takes_the_mark_away_that_the_order_was_sent(broker: Broker) -> None:
    queue, client = CeleryQueue(broker.url), broker.client()
    client.set(contract.sent_key("build", "k", 1), "build")
    client.set(contract.sent_key("build", "k", 2), "build")
    queue.cancel("build", "k", 1)
    assert not client.exists(contract.sent_key("build", "k", 1))
    assert client.exists(contract.sent_key("build", "k", 2)), "that of another attempt stays"


def test_a_preparation_holds_its_lease_while_it_runs(broker: Broker) -> None:
    queue = CeleryQueue(broker.url)
    queue.send_prepare("b1")
    with queue.preparing("b1"):
        assert not broker.client().exists(contract.sent_key("prepare", "b1", 0))
        assert queue.under_way([("prepare", "b1", 0)])
    assert not queue.under_way([("prepare", "b1", 0)])


def test_a_broker_that_is_away_is_told_and_comes_back(broker: Broker) -> None:
    queue = CeleryQueue(broker.url)
    assert queue.trouble() is None
    broker.stop()
    assert "does not answer" in (queue.trouble() or "")
    with pytest.raises(QueueUnavailable):
        queue.send_probe(PROBE)
    with pytest.raises(QueueUnavailable):
        queue.under_way([("probe", "b1.1", 2)])
    broker.start()
    queue.send_probe(PROBE)
    assert queue.under_way([("probe", "b1.1", 2)])
