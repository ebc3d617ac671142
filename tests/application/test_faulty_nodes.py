"""What a node did wrong goes to another node, a broken one is taken out, and GPUs are of one class for all runs."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from service.application.ports import QueueUnavailable
from service.domain.bisection import Bisection, Gpu, Node
from service.domain.errors import NotFound
from service.domain.evidence import Fault, Outcome, Replaced, Sign, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.recipe import Resources
from service.domain.results import ProbeReport
from tests.application.conftest import World

GOOD, BAD = Outcome("script", exit_status=0), Outcome("script", exit_status=1)
FULL = replace(BAD, signs=(Sign("disk-full", "No space left on device", root=True),))
GPUS = {"gpus": "0: H100"}
BROKEN = replace(BAD, signs=(Sign("gpu-broken", "Xid 79: GPU has fallen off the bus"),), environment=GPUS)


def node(world: World, name: str, *models: str, **change: object) -> Node:
    gpus = tuple(Gpu(index, model, model.lower(), 80 * 2**30) for index, model in enumerate(models))
    found = Node(name, 1, world.clock.now(), "alive", gpus=gpus)
    world.flow.node(replace(found, **change), booted=False)
    return found


def begin(world: World, **change: object) -> Bisection:
    found = world.submit(**change)
    world.workers.prepare(world.flow)
    return found


def test_a_fault_goes_to_a_node_that_has_not_failed_with_it(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        node(world, name)
    begin(world)
    tried = []
    for _ in range(2):
        tried.append(world.workers.observe(world.flow, FULL, node=(["n1"] + tried)[-1] if not tried else tried[-1]))
        world.wait_for_retry()
        assert world.workers.probes[0].target not in {None, "n1"}
        tried[-1] = world.workers.probes[0].target or ""
    assert sorted(tried) == ["n2", "n3"]
    probe = world.flow.probes(tried and "b0000000001")[0]
    assert [fault.node for fault in probe.faults] == ["n1", tried[0]]
    assert all(fault.outcome is not None and fault.outcome.log is not None for fault in probe.faults)


def test_the_only_node_tries_it_again(world: World) -> None:
    node(world, "n1")
    begin(world)
    world.workers.observe(world.flow, FULL)
    world.wait_for_retry()
    assert world.workers.probes[0].target is None


def test_a_probe_for_a_node_that_goes_away_goes_to_any_other(world: World) -> None:
    node(world, "n1")
    node(world, "n2")
    begin(world)
    world.workers.observe(world.flow, FULL)
    world.wait_for_retry()
    waiting = world.workers.probes.pop()
    assert waiting.target == "n2"
    node(world, "n2", state="left")
    world.flow.sweep()
    again = world.workers.probes.pop()
    assert (again.target, again.attempt) == (None, waiting.attempt + 1)


def test_a_node_with_a_broken_gpu_gets_no_probe_until_it_is_brought_back(world: World) -> None:
    node(world, "n1")
    node(world, "n2")
    id = begin(world).id
    world.workers.observe(world.flow, BROKEN)
    assert world.workers.taken_out == [("n1", True)]
    assert "Xid 79" in {found.name: found.out for found in world.flow.nodes()}["n1"]
    node(world, "n1")
    assert "Xid 79" in {found.name: found.out for found in world.flow.nodes()}["n1"], "its next beat changes nothing"
    world.wait_for_retry()
    assert world.workers.taken_out[-2:] == [("n1", True), ("n2", False)], "the broker may forget, so it is told again"
    assert world.workers.probes[0].target == "n2"
    world.flow.bring_back("n1")
    assert world.workers.taken_out[-1] == ("n1", False)
    assert {found.name: found.out for found in world.flow.nodes()}["n1"] == ""
    assert any(event.kind == "node out" for event in world.flow.events(id))


def test_a_run_that_had_no_gpu_cannot_have_met_a_broken_one(world: World) -> None:
    """Whatever its log says: else a commit's own words could take out all nodes."""
    node(world, "n1")
    id = begin(world).id
    world.workers.observe(world.flow, replace(BROKEN, environment={}))
    assert world.workers.taken_out == []
    assert world.flow.probes(id)[0].verdict is Verdict.BAD


def test_what_was_said_of_a_node_while_the_broker_was_away_is_told_as_it_stands_now(world: World) -> None:
    node(world, "n1")
    begin(world)
    world.workers.down = True
    with pytest.raises(QueueUnavailable):
        world.workers.take_out("n1", out=True)
    world.workers.observe(world.flow, BROKEN)
    world.flow.bring_back("n1")
    world.workers.down = False
    world.clock.pass_(21)
    world.flow.sweep()
    assert {out for _, out in world.workers.taken_out} == {False}


def test_only_a_node_that_is_known_is_brought_back(world: World) -> None:
    node(world, "n1")
    with pytest.raises(NotFound, match="n2"):
        world.flow.bring_back("n2")


def test_a_worker_goes_on_with_what_it_adopted_after_a_restart(world: World) -> None:
    node(world, "n1")
    id = begin(world, width=2).id
    first, second = (world.workers.start(world.flow) for _ in range(2))
    alive = Node("n1", 2, world.clock.now(), "alive")
    world.flow.node(alive, booted=True, adopted=frozenset({("probe", first.probe, first.attempt)}))
    states = {probe.id: (probe.state, probe.attempt) for probe in world.flow.probes(id)}
    assert states[first.probe] == (ProbeState.RUNNING, first.attempt)
    assert states[second.probe] == (ProbeState.QUEUED, second.attempt + 1)


def test_a_worker_that_comes_back_may_name_what_this_database_does_not_hold(world: World) -> None:
    """A result that it could not deliver may be of a service that was here before."""
    alive = Node("n1", 2, world.clock.now(), "alive")
    world.flow.node(alive, booted=True, adopted=frozenset({("probe", "bnone.1", 1), ("build", "knone", 1)}))
    assert [found.name for found in world.flow.nodes()] == ["n1"]


def test_a_run_is_adopted_whose_beginning_was_never_told(world: World) -> None:
    node(world, "n1")
    id = begin(world).id
    order = world.workers.probes.pop()
    alive = Node("n1", 1, world.clock.now(), "alive")
    world.flow.node(alive, booted=True, adopted=frozenset({("probe", order.probe, order.attempt)}))
    assert world.workers.cancelled == []
    assert (world.flow.probes(id)[0].state, world.flow.probes(id)[0].node) == (ProbeState.RUNNING, "n1")


def test_what_everyone_is_refused_is_tried_again_later_by_anyone(world: World) -> None:
    node(world, "n1")
    node(world, "n2")
    begin(world)
    world.workers.observe(world.flow, replace(BAD, signs=(Sign("download", "429 Too Many Requests", root=True),)))
    world.clock.pass_(21)
    world.flow.sweep()
    assert world.workers.probes == []
    world.clock.pass_(10)
    node(world, "n1")
    world.flow.sweep()
    assert world.workers.probes[0].target is None


def test_a_bisection_whose_gpus_are_gone_says_what_it_waits_for(world: World) -> None:
    node(world, "n1", *["H100"] * 4)
    found = gpus(world, Resources(gpus=4, gpu="H100"))
    assert not any("waits" in line for line in world.flow.report(found.id).explanation)
    world.workers.observe(world.flow, BROKEN)
    told = " ".join(world.flow.report(found.id).explanation)
    assert "waits for a node with 4 GPUs" in told and "n1 is out: a GPU or its link is broken" in told


def test_what_a_worker_adopted_too_late_is_stopped(world: World) -> None:
    node(world, "n1")
    begin(world)
    order = world.workers.start(world.flow)
    alive = Node("n1", 1, world.clock.now(), "alive")
    world.flow.node(alive, booted=True, adopted=frozenset({("probe", order.probe, order.attempt - 1)}))
    assert ("probe", order.probe, order.attempt - 1) in world.workers.cancelled


def test_a_run_that_is_lost_is_stopped_should_its_node_come_back(world: World) -> None:
    node(world, "n1")
    begin(world)
    order = world.workers.start(world.flow)
    world.workers.carries = False
    world.flow.sweep()
    world.clock.pass_(31)
    world.flow.sweep()
    assert ("probe", order.probe, order.attempt) in world.workers.cancelled


def gpus(world: World, wanted: Resources) -> Bisection:
    recipe = replace(world.flow.ports.recipes["source"], resources=wanted)
    world.flow.ports.recipes["gpus"] = recipe
    found = world.submit(project="gpus")
    world.flow.prepare(world.workers.prepares.pop())
    return world.flow.bisection(found.id)


def test_all_runs_get_gpus_of_one_class(world: World) -> None:
    node(world, "n1", *["H100"] * 4)
    node(world, "n2", *["H800"] * 8)
    node(world, "n3", *["H800"] * 8)
    found = gpus(world, Resources(gpus=8, gpu="H800|H100"))
    assert found.setup.gpu_class == "h800"
    order = world.workers.probes[0]
    assert (order.gpu_class, order.resources.gpus) == ("h800", 8)
    world.workers.observe(world.flow, FULL, node="n2")
    world.wait_for_retry()
    assert world.workers.probes[-1].target == "n3"


def test_a_bisection_waits_for_a_node_with_its_gpus_and_says_what_there_is(world: World) -> None:
    node(world, "n1", *["A10"] * 8)
    found = gpus(world, Resources(gpus=4, gpu="H800|H100"))
    assert found.state is BisectionState.PREPARING
    assert any("4 GPUs (H800|H100)" in note and "8 x A10" in note for note in found.notes)
    node(world, "n2", *["NVIDIA H100 80GB"] * 4)
    world.workers.carries = False
    world.clock.pass_(31)
    world.flow.sweep()
    node(world, "n2", *["NVIDIA H100 80GB"] * 4)
    world.flow.prepare(world.workers.prepares.pop())
    begun = world.flow.bisection(found.id)
    assert (begun.state, begun.setup.gpu_class) == (BisectionState.CHECKING_ENDS, "nvidia h100 80gb")
    assert not any("waits" in note for note in begun.notes)


def test_an_engine_that_is_still_away_is_given_two_minutes(world: World) -> None:
    id = begin(world).id
    world.workers.fault(world.flow, "engine")
    world.wait_for_retry()
    world.workers.fault(world.flow, "engine")
    world.clock.pass_(110)
    world.flow.sweep()
    assert world.workers.probes == []
    world.clock.pass_(11)
    world.flow.sweep()
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_a_request_that_no_retry_helps_is_refused_at_once(world: World) -> None:
    id = begin(world, width=3).id
    gated = replace(BAD, signs=(Sign("model-gated", "401: the repository is gated", root=True),))
    world.workers.observe(world.flow, gated)
    found = world.flow.bisection(id)
    assert (found.state, found.problem and found.problem.slug) == (BisectionState.REFUSED, "model-gated")
    assert found.problem is not None and "HF_TOKEN" in found.problem.advice
    assert not [probe for probe in world.flow.probes(id) if probe.state in (ProbeState.QUEUED, ProbeState.RUNNING)]


def test_what_one_commit_alone_misses_ends_nothing(world: World) -> None:
    """The model is there: runs have passed with it."""
    id = begin(world).id
    world.workers.observe(world.flow, BAD)
    world.workers.observe(world.flow, GOOD)
    missing = replace(BAD, signs=(Sign("model-missing", "404: no such revision", root=True),))
    world.workers.observe(world.flow, missing)
    replaced = Replaced("tinyserve 0.1", "tinyserve 0.2", "pip install tinyserve==0.2")
    world.workers.observe(world.flow, replace(GOOD, replaced=replaced))
    assert world.flow.bisection(id).state is BisectionState.SEARCHING
    assert [probe.verdict for probe in world.flow.probes(id)[2:4]] == [Verdict.SKIP, Verdict.SKIP]


def test_one_bisection_takes_out_one_node(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        node(world, name)
    id = begin(world).id
    world.workers.observe(world.flow, BROKEN, node="n1")
    for name in ("n2", "n3"):
        world.wait_for_retry()
        world.workers.observe(world.flow, BROKEN, node=name)
    assert [found.name for found in world.flow.nodes() if found.out] == ["n1"]
    assert world.flow.probes(id)[0].verdict is Verdict.BAD, "what happens on every node is the commit's"


def test_faults_of_different_kinds_are_not_counted_together(world: World) -> None:
    id = begin(world).id
    watchdog = replace(BAD, signs=(Sign("nccl-watchdog", "Watchdog caught a time-out", root=True),))
    world.workers.fault(world.flow, "lost")
    world.wait_for_retry()
    for _ in range(3):
        world.workers.observe(world.flow, watchdog)
        world.wait_for_retry()
    assert world.flow.probes(id)[0].verdict is Verdict.BAD


def test_a_node_that_refuses_does_not_keep_a_probe_from_the_one_that_fits(world: World) -> None:
    node(world, "n1")
    node(world, "n2")
    begin(world)
    order = world.workers.start(world.flow)
    world.flow.probed(ProbeReport(order.probe, order.attempt, "n1", fault=Fault("disk-full", "full")))
    world.wait_for_retry()
    order = world.workers.start(world.flow)
    world.flow.probed(ProbeReport(order.probe, order.attempt, "n2", fault=Fault("other-python", "3.12")))
    world.wait_for_retry()
    assert world.workers.probes[0].target == "n1"


def test_a_script_that_replaces_the_package_is_refused_with_its_line(world: World) -> None:
    id = begin(world).id
    replaced = Replaced("tinyserve 0.1", "tinyserve 0.2", "pip install tinyserve==0.2")
    world.workers.observe(world.flow, replace(GOOD, replaced=replaced))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.REFUSED
    assert found.problem is not None and "pip install tinyserve==0.2" in found.problem.detail


def test_more_than_a_third_of_faults_ends_it_with_what_the_nodes_have(world: World) -> None:
    id = begin(world).id
    world.workers.observe(world.flow, BAD)
    world.workers.observe(world.flow, GOOD)
    while world.flow.bisection(id).state is BisectionState.SEARCHING:
        world.workers.observe(world.flow, FULL)
        world.wait_for_retry()
    found = world.flow.bisection(id)
    assert (found.state, found.problem and found.problem.slug) == (BisectionState.FAILED, "unfit-environment")
    assert found.problem is not None and "disk-full" in found.problem.detail
    faulted = [probe for probe in world.flow.probes(id) if probe.state is ProbeState.FAULTED]
    assert all(len(probe.faults) == 3 for probe in faulted)


def test_a_commit_whose_dependencies_do_not_fit_is_tried_with_those_of_its_own_day(native: World) -> None:
    found = native.submit(project="native")
    native.workers.prepare(native.flow)
    drifted = replace(BAD, dependencies={"torch": "2.8"}, signs=(Sign("drift", "undefined symbol: x", root=True),))
    native.workers.build(native.flow)
    first = native.workers.observe(native.flow, drifted)
    again = native.workers.probes[0]
    assert first.dependencies is not None and again.dependencies is not None
    commit = native.flow.ports.history.commits(str(native.repository), [again.source.sha])[again.source.sha]
    assert (again.probe, again.attempt) == (first.probe, first.attempt + 1)
    assert again.dependencies.as_of == commit.committed_at.astimezone(UTC).isoformat()
    native.workers.observe(native.flow, drifted)
    probe = native.flow.probes(found.id)[0]
    assert (probe.verdict, probe.own_day, probe.faults) == (Verdict.BAD, True, ())


def test_a_node_that_is_silent_is_sent_nothing(world: World) -> None:
    node(world, "n1")
    node(world, "n2", seen_at=world.clock.now() - timedelta(minutes=5))
    begin(world)
    world.workers.observe(world.flow, FULL)
    world.wait_for_retry()
    assert world.workers.probes[0].target is None
