"""One more run that somebody asks for, a budget that grows, and a bisection like another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.application.submission import BudgetForm, Submission
from service.domain.access import Scope
from service.domain.bisection import Purpose
from service.domain.budget import Budget
from service.domain.errors import NotAllowed, NotNow
from service.domain.evidence import Verdict
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.domain.policy import CallerPolicy
from tests.application import test_measuring as measuring
from tests.application.conftest import World
from tests.application.test_override import ANN, BOB, begin, named, probes_of, say, searched
from tests.callers import caller


def test_a_commit_is_run_once_more_and_the_answer_stands_again(world: World) -> None:
    id = searched(world)
    before = len(world.flow.probes(id))
    asked = world.flow.reprobe(id, world.shas[13], "to be sure", ANN)
    assert (asked.purpose, asked.trial, asked.state) == (Purpose.ASKED, 2, ProbeState.QUEUED)
    going = world.flow.bisection(id)
    assert (going.state, going.answer) == (BisectionState.SEARCHING, None)
    assert world.flow.reprobe(id, world.shas[13], "to be sure", BOB) == asked
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert (found.state, named(found)) == (BisectionState.FOUND, (world.shas[13],))
    assert len(world.flow.probes(id)) == before + 1
    assert found.answer is not None and "in 2 runs" in found.answer.why
    (event,) = [event for event in world.flow.events(id) if event.kind == "asked for"]
    assert (event.data["by"], event.data["why"], event.data["probe"]) == ("ann", "to be sure", asked.id)


def test_a_run_that_says_otherwise_takes_the_answer_back(world: World) -> None:
    id = searched(world)
    world.flow.reprobe(id, world.shas[13], "to be sure", ANN)
    world.workers.work(world.flow, lambda sha: 0)
    found = world.flow.bisection(id)
    assert found.state is BisectionState.SUSPECTS
    assert found.answer is not None and "judged bad and good" in found.answer.why
    say(world, id, 13, Verdict.BAD)
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_the_same_key_asks_once_though_the_run_is_over(world: World) -> None:
    id = searched(world)
    asked = world.flow.reprobe(id, world.shas[13], "to be sure", ANN, "k1")
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.reprobe(id, world.shas[13], "to be sure", ANN, "k1").id == asked.id
    assert world.flow.bisection(id).state is BisectionState.FOUND
    assert world.flow.reprobe(id, world.shas[13], "to be sure", BOB, "k1").id != asked.id


def test_what_is_asked_for_runs_beside_the_search_and_is_not_cut_short(world: World) -> None:
    id = begin(world)
    for _ in range(2):
        world.workers.run(world.flow, world.truth(13))
    asked = world.flow.reprobe(id, world.shas[2], "curious", ANN)
    held = world.workers.probes.pop()
    assert held.probe == asked.id
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.SEARCHING
    world.workers.probes.append(held)
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)
    assert world.flow.probe(asked.id).verdict is Verdict.GOOD


def test_an_end_that_was_lost_to_faults_is_tried_again(world: World) -> None:
    id = begin(world)
    for _ in range(3):
        world.workers.fault(world.flow)
        world.wait_for_retry()
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FAILED
    world.flow.reprobe(id, world.shas[19], "the disk was cleared", ANN)
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_one_more_run_counts_in_the_budget(world: World) -> None:
    id = begin(world, budget=BudgetForm(probes=4))
    world.workers.work(world.flow, world.truth(13))
    with pytest.raises(NotNow) as refused:
        world.flow.reprobe(id, world.shas[13], "to be sure", ANN)
    assert f"firstbad extend {id} --probes 5" in refused.value.advice


def test_one_more_measurement_of_a_number_is_made_on_its_bench(world: World) -> None:
    id = measuring.begin(world)
    measuring.run(world, measuring.dropping(13))
    asked = world.flow.reprobe(id, world.shas[13], "to be sure", ANN)
    assert asked.target == "n1"
    measuring.run(world, measuring.dropping(13, seed=2))
    found = world.flow.bisection(id)
    assert (found.state, named(found)) == (BisectionState.FOUND, (world.shas[13],))
    assert world.flow.probe(asked.id).verdict is Verdict.BAD, world.flow.probe(asked.id).reason


def test_while_it_is_paused_a_run_waits(world: World) -> None:
    id = begin(world)
    world.workers.run(world.flow, world.truth(13))
    world.flow.pause(id, "ann")
    world.workers.probes.clear()
    asked = world.flow.reprobe(id, world.shas[5], "curious", ANN)
    world.flow.sweep()
    assert asked.held and not world.workers.probes
    world.flow.resume(id, "ann")
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.probe(asked.id).verdict is Verdict.GOOD


def test_a_budget_that_was_spent_and_grows_lets_the_search_go_on(world: World) -> None:
    id = begin(world, budget=BudgetForm(probes=4))
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.SUSPECTS
    going = world.flow.extend(id, Budget(probes=20), ANN)
    assert (going.state, going.budget, going.answer) == (BisectionState.SEARCHING, Budget(probes=20), None)
    assert going.request.budget == Budget(probes=4)
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert (found.state, named(found)) == (BisectionState.FOUND, (world.shas[13],))
    (event,) = [event for event in world.flow.events(id) if event.kind == "budget changed"]
    assert event.data["by"] == "ann"
    assert world.flow.extend(id, Budget(probes=20), ANN) == found
    with pytest.raises(NotNow, match="not for its budget"):
        world.flow.extend(id, Budget(probes=30), ANN)


def test_time_that_was_over_before_anything_began_is_given_and_it_begins(world: World) -> None:
    id = world.submit(budget=BudgetForm(wall="1m")).id
    world.workers.prepares.clear()
    world.clock.pass_(61)
    world.flow.sweep()
    assert world.flow.bisection(id).state is BisectionState.CANCELLED
    world.clock.pass_(86400)
    again = world.flow.extend(id, Budget(wall_s=3600.0), ANN)
    assert (again.state, again.problem, again.ended_at) == (BisectionState.QUEUED, None, None)
    world.workers.prepare(world.flow)
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_time_that_was_given_later_ends_it_too(world: World) -> None:
    id = begin(world)
    for _ in range(3):
        world.workers.run(world.flow, world.truth(13))
    world.flow.extend(id, Budget(wall_s=600.0), ANN)
    world.clock.pass_(700)
    world.flow.sweep()
    assert world.flow.bisection(id).state is BisectionState.SUSPECTS
    assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]


def test_time_that_was_taken_off_does_not_end_it(world: World) -> None:
    id = begin(world, budget=BudgetForm(wall="10m"))
    for _ in range(3):
        world.workers.run(world.flow, world.truth(13))
    world.flow.extend(id, Budget(), ANN)
    world.clock.pass_(7000)
    world.flow.sweep()
    assert world.flow.bisection(id).state is BisectionState.SEARCHING


def test_a_policy_holds_for_what_is_given_later(world: World) -> None:
    policy = CallerPolicy("few", scope=Scope.SUBMIT, budget=Budget(probes=5))
    ports = world.flow.ports
    world.flow = replace(world.flow, ports=replace(ports, policy=replace(ports.policy, callers=(policy,))))
    small = caller("small", Scope.SUBMIT)
    id = world.submit(by=small).id
    with pytest.raises(NotAllowed):
        world.flow.extend(id, Budget(probes=6), small)
    with pytest.raises(NotAllowed):
        world.flow.extend(id, Budget(), small)
    assert world.flow.extend(id, Budget(probes=4), small).budget == Budget(probes=4)


def test_a_clone_is_another_bisection_that_knows_its_original(world: World) -> None:
    id = searched(world)
    original = world.flow.bisection(id).request
    wanted = Submission(
        good=original.good, bad=world.shas[15], repo=original.repo, project="source", script="true", pasted=False
    )
    made = world.flow.clone(id, wanted, BOB, "k")
    assert (made.clone_of, made.submitter, made.state) == (id, "bob", BisectionState.QUEUED)
    assert made.request == replace(original, bad=world.shas[15])
    assert world.flow.clone(id, wanted, BOB, "k") == made
    world.workers.prepare(world.flow)
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(made.id)) == (world.shas[13],)


def test_nothing_is_cloned_by_who_may_not_submit(world: World) -> None:
    id = searched(world)
    wanted = Submission(good=(world.shas[0],), bad=world.shas[-1], repo=str(world.repository), script="true")
    with pytest.raises(NotAllowed):
        world.flow.clone(id, wanted, caller("guest", None))


def test_what_was_tried_is_seen_in_order(world: World) -> None:
    id = searched(world)
    world.flow.reprobe(id, world.shas[5], "curious", ANN)
    assert [probe.number for probe in probes_of(world, id, 5)] == [len(world.flow.probes(id))]
