"""Nodes and messages of another version of the contract: told by name, believed in nothing, and no end of a probe."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service import inbox
from service.application.record import counted, spent
from service.domain.bisection import Node
from service.domain.evidence import Fault
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.strangers import stranger
from tests.application.conftest import World
from tests.application.native import begun, state
from worker import contract

OLD, NEW = contract.VERSION - 1, contract.VERSION + 1
HANDLERS = {"probed": inbox.probed, "built": inbox.built, "surveyed": inbox.surveyed}
NAMES = {"probed": "probe", "built": "key", "surveyed": "bisection"}
odd = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.lists(st.integers(), max_size=2)
)
keys = st.sampled_from(["version", "probe", "key", "bisection", "id", "attempt", "node", "event", "fault", "outcome"])
payloads = odd | st.dictionaries(keys, odd | st.dictionaries(st.text(max_size=3), odd, max_size=2), max_size=8)


def tell(world: World, node: str, **more: Any) -> None:
    report = contract.NodeReport(node=node, event="alive", slots=2, labels=("nvlink",), models=("Qwen/Qwen3-8B",))
    inbox.node(world.flow, {**report.model_dump(mode="json"), **more})


def out(world: World, name: str) -> str:
    return next(node.out for node in world.flow.nodes() if node.name == name)


def running(world: World) -> Any:
    world.submit()
    world.workers.prepare(world.flow)
    return world.workers.probes.pop()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (OLD, f"speaks version {OLD}, this service {contract.VERSION}: upgrade it"),
        (NEW, f"speaks version {NEW}, this service {contract.VERSION}: upgrade this service"),
        ("5", f"speaks version '5', this service {contract.VERSION}: install the same version for this service and it"),
        (True, f"speaks version True, this service {contract.VERSION}: install the same version"),
        (None, f"speaks version (none), this service {contract.VERSION}: install the same version"),
    ],
)
def test_a_node_of_another_version_is_listed_with_what_to_do_and_gets_no_probes(
    world: World, version: object, said: str
) -> None:
    tell(world, "n7", version=version)
    (node,) = world.flow.nodes()
    assert node.out.startswith(said)
    assert (node.state, node.labels, node.slots) == ("alive", (), 0)
    assert world.workers.taken_out == [("n7", True)]
    tell(world, "n7", version=version)
    assert len(world.workers.taken_out) == 1
    tell(world, "n7", version=version, event="left")
    assert world.flow.nodes()[0].state == "left"


def test_a_node_is_in_again_once_it_is_upgraded_and_one_that_was_taken_out_stays_out(world: World) -> None:
    for name in ("n1", "n2"):
        tell(world, name)
        tell(world, name, version=OLD)
    assert [node.labels for node in world.flow.nodes()] == [("nvlink",)] * 2
    tell(world, "n1")
    assert (out(world, "n1"), world.workers.taken_out[-1]) == ("", ("n1", False))
    with world.flow.ports.bisections.transaction() as tx:
        broken = tx.node("n2")
        assert broken is not None
        tx.save_node(Node("n2", 2, broken.seen_at, "alive", out="a card fell off the bus"))
    tell(world, "n2", version=OLD)
    tell(world, "n2")
    assert out(world, "n2") == "a card fell off the bus"


def test_where_no_node_can_be_understood_the_service_is_not_well(world: World) -> None:
    tell(world, "n7", version=OLD)
    said = {name: check() for name, check in world.flow.checks().items()}["workers"]
    assert said is not None and "n7 speaks version" in said
    tell(world, "n8")
    assert world.flow.checks()["workers"]() is None


@pytest.mark.parametrize("message", ["started", "probed", "built", "surveyed"])
def test_whatever_a_node_of_another_version_sends_names_it(world: World, message: str) -> None:
    getattr(inbox, message)(world.flow, {"version": OLD, "node": "n7", "kind": "probe"})
    assert out(world, "n7").startswith(f"speaks version {OLD}")


def test_a_result_of_another_version_is_a_fault_however_good_its_outcome_looks(world: World) -> None:
    order = running(world)
    good = {"exit_status": 0, "ended_in": "script"}
    answer = {"version": OLD, "probe": order.probe, "attempt": order.attempt, "node": "n7", "outcome": good}
    inbox.probed(world.flow, answer)
    probe = world.flow.probe(order.probe)
    assert (probe.state, probe.attempt, probe.outcome, probe.verdict) == (ProbeState.QUEUED, 2, None, None)
    (fault,) = probe.faults
    assert (fault.kind, fault.node) == ("version", "n7")
    assert fault.message == f"the worker on n7 speaks version {OLD}, this service {contract.VERSION}"
    assert fault.advice == "upgrade firstbad on n7"


@pytest.mark.parametrize(
    "missing",
    [{"probe": None}, {"attempt": None}, {"attempt": "one"}, {"attempt": -1}, {"attempt": True}, {"probe": ["x"]}],
)
def test_a_result_that_does_not_say_what_it_is_about_is_a_line_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture, missing: dict[str, object]
) -> None:
    order = running(world)
    answer = {"version": NEW, "probe": order.probe, "attempt": order.attempt, "node": "n7", **missing}
    with caplog.at_level(logging.WARNING):
        inbox.probed(world.flow, answer)
    assert f"the worker on n7 speaks version {NEW}" in caplog.text
    probe = world.flow.probe(order.probe)
    assert (probe.state, probe.attempt, probe.faults) == (ProbeState.QUEUED, 1, ())


def test_a_probe_outlasts_any_number_of_answers_of_another_version(world: World) -> None:
    order = running(world)
    for _ in range(40):
        probe = world.flow.probe(order.probe)
        inbox.probed(world.flow, {"version": OLD, "probe": probe.id, "attempt": probe.attempt, "node": "n7"})
    probe = world.flow.probe(order.probe)
    assert (probe.state, probe.attempt, len(probe.faults)) == (ProbeState.QUEUED, 41, 1)
    assert sum(event.kind == "fault" for event in world.flow.events(probe.bisection_id)) == 1
    world.wait_for_retry()
    tell(world, "n1")
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(probe.bisection_id)
    assert found.state is BisectionState.FOUND and found.answer is not None
    assert found.answer.shas == (world.shas[13],)


def test_another_node_gets_the_probe_that_one_of_another_version_refused(world: World) -> None:
    tell(world, "n1")
    tell(world, "n7", version=OLD)
    order = running(world)
    inbox.probed(world.flow, {"version": OLD, "probe": order.probe, "attempt": order.attempt, "node": "n7"})
    assert world.flow.probe(order.probe).target == "n1"


def test_a_build_and_a_survey_outlast_them_too(native: World) -> None:
    id = native.submit(project="native").id
    native.flow.prepare(native.workers.prepares.pop())
    for _ in range(12):
        asked = native.workers.surveys.pop()
        message = {"version": OLD, "bisection": asked.bisection, "attempt": asked.attempt, "node": "n7"}
        inbox.surveyed(native.flow, message)
        native.wait_for_retry()
    assert native.flow.bisection(id).state is BisectionState.PREPARING
    native.workers.survey(native.flow)
    for _ in range(12):
        order = native.workers.builds.pop()
        inbox.built(native.flow, {"version": OLD, "key": order.key, "attempt": order.attempt, "node": "n7"})
        native.wait_for_retry()
    assert state(native, native.workers.builds[0].key) is BuildState.QUEUED
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(id).state is BisectionState.FOUND


def test_faults_of_other_kinds_are_counted_beside_them() -> None:
    version, full = Fault("version", "old"), Fault("disk-full", "full")
    assert not spent((version,) * 100)
    assert counted((version, full, version)) == 1
    assert spent((full, version, full, full))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(payload=payloads, message=st.sampled_from([*HANDLERS, "started", "node"]))
def test_nothing_that_is_of_no_version_of_ours_breaks_the_control_worker(
    world: World, payload: object, message: str
) -> None:
    if stranger(payload, contract.VERSION) is None:
        return
    inbox.about(payload)
    getattr(inbox, message)(world.flow, payload)
    assert not world.flow.bisections()


def test_only_our_own_version_is_ours() -> None:
    assert stranger({"version": contract.VERSION}, contract.VERSION) is None
    for other in (OLD, NEW, True, None, str(contract.VERSION), float(contract.VERSION) + 0.5, -1, 10**12, [5], {}):
        assert stranger({"version": other}, contract.VERSION) is not None
    found = stranger({"version": OLD, "node": "x\n", "probe": "b.1", "attempt": "3"}, contract.VERSION)
    assert found is not None and (found.node, found.about("probe"), found.about("key")) == ("", ("b.1", 3), None)


def test_what_was_begun_for_a_node_is_not_begun_by_it(native: World) -> None:
    """That an order was taken is told by a message too, which is not believed either."""
    begun(native)
    order = native.workers.builds[0]
    message = {"version": OLD, "kind": "build", "id": order.key, "attempt": order.attempt, "node": "n7"}
    inbox.started(native.flow, message)
    assert state(native, order.key) is BuildState.QUEUED
