"""Orders of another version of firstbad: refused by name, whatever else stands in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import needs
from tests.redis_server import Broker
from tests.waiting import eventually
from tests.worker.bench import Bench
from tests.worker.node import Node
from worker.contract import SERVICE_KEY, VERSION, ProbeOrder, Queue, SurveyOrder, Task, lease_key, taken_key
from worker.errors import NodeFault
from worker.reading import NAMES, NO_ATTEMPT, failure, fault_of, head, mismatch, parsed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
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


def send(node: Node, order: dict[str, Any]) -> None:
    node.app().send_task(Task.PROBE, args=[order], queue=Queue.PROBE, ignore_result=True)


@pytest.mark.parametrize(
    ("version", "older"), [(VERSION + 1, "the worker on node-1"), (VERSION - 1, "the service"), ("2027", "the same")]
)
def test_a_refusal_names_both_versions_and_what_to_upgrade(steady: Node, version: object, older: str) -> None:
    order = {"version": version, "probe": f"p-of-{version}", "attempt": 4, "limits": "as usual", "colour": "blue"}
    send(steady, order)
    result = steady.result(f"p-of-{version}")
    assert result.attempt == 4 and result.fault is not None and result.fault.kind == "version"
    assert str(version) in result.fault.message and f"reads version {VERSION}" in result.fault.message
    assert older in result.fault.advice


@pytest.mark.parametrize("attempt", ["second", None, {"number": 2}, 2.5, True, 10**12, -1])
def test_an_attempt_that_is_no_number_is_refused_every_time_and_takes_nothing(steady: Node, attempt: object) -> None:
    order = {"version": VERSION + 1, "probe": "p-odd", "attempt": attempt}
    for _ in range(2):
        send(steady, order)
        result = steady.result("p-odd")
        assert result.attempt == NO_ATTEMPT
        assert result.fault is not None and result.fault.kind == "version"
    client = steady.broker.client()
    assert not client.exists(taken_key("probe", "p-odd", NO_ATTEMPT), lease_key("probe", "p-odd", NO_ATTEMPT))


@pytest.mark.parametrize("raw", ["no order", None, 7, [], {}, {"probe": None}, {"probe": "x" * 500}, {"probe": "a\nb"}])
def test_what_does_not_say_whose_it_is_is_dropped_and_work_goes_on(
    steady: Node, process_bench: Bench, raw: object
) -> None:
    steady.app().send_task(Task.PROBE, args=[raw], queue=Queue.PROBE, ignore_result=True)
    order = process_bench.order("true")
    steady.send(order)
    assert steady.result(order.probe).outcome is not None
    assert steady.process is not None and steady.process.poll() is None
    assert "does not say whose it is" in steady.log.read_text()


def test_what_is_sent_beside_an_order_keeps_nobody_from_refusing_it(steady: Node) -> None:
    order = {"version": VERSION + 1, "probe": "p-beside", "attempt": 1}
    steady.app().send_task(
        Task.PROBE, args=[order, "more"], kwargs={"urgent": True}, queue=Queue.PROBE, ignore_result=True
    )
    fault = steady.result("p-beside").fault
    assert fault is not None and fault.kind == "version"


def test_a_field_that_this_version_does_not_know_is_a_fault_that_names_it(steady: Node, process_bench: Bench) -> None:
    order = process_bench.order("true")
    steady.send(order, sharding="by rack")
    fault = steady.result(order.probe).fault
    assert fault is not None and fault.kind == "order" and "sharding" in fault.message


def test_a_heartbeat_says_that_the_service_has_another_version(node: Node, process_bench: Bench) -> None:
    client = node.broker.client()
    client.set(SERVICE_KEY, str(VERSION + 1))
    node.ready()
    seen = node.next(Task.NODE, event="alive")["facts"]
    assert seen["contract"] == str(VERSION)
    assert f"version {VERSION + 1}" in seen["version.fault"] and "the worker on node-1" in seen["version.fault"]
    client.delete(SERVICE_KEY)
    # A service that does not say is known by its orders.
    send(node, {"version": VERSION - 1, "probe": "p-old", "attempt": 1})
    node.result("p-old")

    def beat() -> str:
        found: str = node.next(Task.NODE, event="alive")["facts"].get("version.fault", "")
        return found

    eventually(lambda: f"version {VERSION - 1}" in beat())
    order = process_bench.order("true")
    node.send(order)
    assert node.result(order.probe).outcome is not None
    eventually(lambda: not beat())


@given(
    raw=st.dictionaries(st.sampled_from([*NAMES.values(), "attempt", "version", "x"]), JSON),
    kind=st.sampled_from([*NAMES]),
)
def test_whatever_comes_is_read_or_refused_and_the_answer_can_be_sent(raw: dict[str, Any], kind: str) -> None:
    found = head(kind, raw)
    if found is None:
        return
    model = ProbeOrder if kind == "probe" else SurveyOrder
    with pytest.raises(NodeFault) as refused:
        parsed(raw, model, "node-1")
    other = raw.get("version") is True or raw.get("version") != VERSION
    assert refused.value.kind == ("version" if other else "order")
    failure(found, "node-1", fault_of(refused.value)).model_dump_json()


def test_versions_that_are_the_same_or_unknown_are_no_mismatch() -> None:
    assert mismatch(VERSION, "n") == mismatch(None, "n") == ""
    assert "Upgrade firstbad on the service" in mismatch(VERSION - 1, "n")
