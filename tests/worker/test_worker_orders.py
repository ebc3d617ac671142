"""Orders to a worker process that goes on as it was: answered, dropped, refused."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import pytest

from tests.conftest import needs
from tests.redis_server import Broker
from tests.waiting import eventually
from tests.worker.bench import Bench, running
from tests.worker.node import Node
from worker.contract import (
    VERSION,
    ProbeOrder,
    Queue,
    Sandbox,
    SurveyOrder,
    SurveyResult,
    Task,
    cancel_key,
    lease_key,
    sent_key,
)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One for all tests that leave it as it was."""
    needs("redis")
    needs("bwrap")
    folder, broker = tmp_path_factory.mktemp("steady"), Broker()
    found = Node(broker, folder / "node", folder / "worker.log")
    found.ready()
    yield found
    assert found.end() == 0
    broker.stop()


def test_an_order_is_answered(steady: Node, process_bench: Bench) -> None:
    order = process_bench.order("cat hello.txt")
    steady.send(order)
    started = steady.next(Task.STARTED, id=order.probe)
    assert (started["kind"], started["id"], started["attempt"], started["node"]) == ("probe", order.probe, 1, "node-1")
    result = steady.result(order.probe)
    assert result.outcome is not None and result.outcome.exit_status == 0
    client = steady.broker.client()
    assert not client.exists(sent_key("probe", order.probe, 1))
    # The service shall read the result before it misses the lease.
    assert client.ttl(lease_key("probe", order.probe, 1)) > 0


def test_a_second_delivery_is_dropped(steady: Node, process_bench: Bench) -> None:
    first, last = process_bench.order("echo once >> /dev/null"), process_bench.order("true")
    for order in (first, first, first, last):
        steady.send(order)
    steady.result(last.probe)
    assert [each["probe"] for task, each in steady.heard if task == Task.PROBED].count(first.probe) == 1
    # A copy that comes while the result is kept is told of with the next renewal of leases.
    eventually(lambda: not steady.broker.client().exists(sent_key("probe", first.probe, 1)))


def test_a_cancelled_run_ends_and_frees_its_slot(steady: Node, process_bench: Bench) -> None:
    marker = f"3600.{os.getpid()}6"
    slow, last = process_bench.order(f"sleep {marker}"), process_bench.order("true")
    steady.send(slow)
    steady.send(last)
    eventually(lambda: running(marker))
    steady.broker.client().set(cancel_key("probe", slow.probe, 1), "1")
    steady.result(last.probe)
    assert running(marker) == []
    assert not [each for task, each in steady.heard if (task, each.get("probe")) == (Task.PROBED, slow.probe)]


def test_another_version_is_refused_by_name(steady: Node, process_bench: Bench) -> None:
    order = process_bench.order("true")
    steady.send(order, version=VERSION + 1)
    fault = steady.result(order.probe).fault
    assert fault is not None and fault.kind == "version"
    assert str(VERSION + 1) in fault.message


def test_an_order_that_makes_no_sense_is_a_fault(steady: Node, process_bench: Bench) -> None:
    order = process_bench.order("true")
    steady.send(order, limits={"timeout_s": "long"})
    fault = steady.result(order.probe).fault
    assert fault is not None and fault.kind == "order"


def test_a_message_that_makes_no_sense_does_not_stop_the_worker(steady: Node, process_bench: Bench) -> None:
    steady.app().send_task(Task.PROBE, args=["no order"], queue=Queue.PROBE, ignore_result=True)
    steady.app().send_task(Task.PROBE, args=[], queue=Queue.PROBE, ignore_result=True)
    steady.app().send_task("firstbad.unknown", args=[], queue=Queue.PROBE, ignore_result=True)
    order = process_bench.order("true")
    steady.send(order)
    assert steady.result(order.probe).outcome is not None


def test_a_sandbox_that_is_not_allowed_is_a_fault(steady: Node, process_bench: Bench) -> None:
    order = process_bench.order("true").model_dump(mode="json")
    order["sandbox"] = {"kind": "docker", "image": "any", "network": "none"}
    steady.send(ProbeOrder.model_validate(order))
    fault = steady.result(order["probe"]).fault
    assert fault is not None and fault.kind == "sandbox-refused"


def test_a_survey_is_answered(steady: Node) -> None:
    order = SurveyOrder(bisection="b7", attempt=3, sandbox=Sandbox(kind="process"))
    steady.app().send_task(Task.SURVEY, args=[order.model_dump(mode="json")], queue=Queue.BUILD, ignore_result=True)
    assert steady.next(Task.STARTED, kind="survey")["attempt"] == 3
    result = SurveyResult.model_validate(steady.next(Task.SURVEYED, bisection="b7"))
    assert (result.bisection, result.attempt, result.node) == ("b7", 3, "node-1")
    assert result.builder is not None and result.builder.python == platform.python_version().rpartition(".")[0]


def test_a_survey_that_makes_no_sense_is_a_fault_of_that_survey(steady: Node) -> None:
    order = {"version": VERSION, "bisection": "b8", "attempt": 1, "sandbox": {"kind": "cloud"}}
    steady.app().send_task(Task.SURVEY, args=[order], queue=Queue.BUILD, ignore_result=True)
    result = SurveyResult.model_validate(steady.next(Task.SURVEYED, bisection="b8"))
    assert result.fault is not None and result.fault.kind == "order"
