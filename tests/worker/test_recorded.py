"""A worker process and its results until the service has recorded them: kept, leased, named, sent again."""

from __future__ import annotations

import signal

from tests.waiting import eventually
from tests.worker.bench import Bench
from tests.worker.node import Node
from worker.contract import ProbeOrder, Task, done_key, lease_key


def ended(node: Node, bench: Bench) -> ProbeOrder:
    """A run of which the service has got the result, and does not say that it has recorded it."""
    node.records = False
    node.ready()
    order = bench.order("echo precious")
    node.send(order)
    assert node.result(order.probe).outcome is not None
    return order


def kept(node: Node) -> int:
    return len(list((node.work_dir / "outgoing").iterdir()))


def test_what_has_ended_is_leased_until_it_is_recorded(node: Node, process_bench: Bench) -> None:
    order = ended(node, process_bench)
    client, lease = node.broker.client(), lease_key("probe", order.probe, 1)
    client.delete(lease)
    eventually(lambda: client.exists(lease))
    assert kept(node) == 1
    client.set(done_key("probe", order.probe, 1), "1")
    eventually(lambda: kept(node) == 0)
    # Neither comes back, also when Redis has forgotten it all.
    client.flushall()
    node.heard.clear()
    node.next(Task.NODE, event="alive")
    assert not client.exists(lease)
    assert not [each for task, each in node.heard if task == Task.PROBED]


def test_the_next_life_of_a_worker_names_what_is_not_recorded_and_sends_it_again(
    node: Node, process_bench: Bench
) -> None:
    order = ended(node, process_bench)
    node.end(signal.SIGKILL)
    node.records = True
    node.start()
    booted = node.next(Task.NODE, event="booted")
    assert [(held["kind"], held["id"], held["attempt"]) for held in booted["adopted"]] == [("probe", order.probe, 1)]
    assert node.result(order.probe).outcome is not None
    eventually(lambda: kept(node) == 0)


def test_a_worker_that_leaves_does_not_wait_for_the_service(node: Node, process_bench: Bench) -> None:
    order = ended(node, process_bench)
    assert node.end(seconds=10.0) == 0
    assert kept(node) == 1
    node.broker.client().set(done_key("probe", order.probe, 1), "1")
    node.start()
    assert node.next(Task.NODE, event="booted")["adopted"] == []
    eventually(lambda: kept(node) == 0)
    node.next(Task.NODE, event="alive")
    assert not [each for task, each in node.heard if task == Task.PROBED]
