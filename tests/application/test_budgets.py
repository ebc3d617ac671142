"""A budget that is spent ends a bisection with what is known by then, on both databases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from service.application.submission import BudgetForm
from service.domain.bisection import Bisection, Gpu, Node, Purpose
from service.domain.budget import Budget
from service.domain.evidence import Fault
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.domain.recipe import Resources
from service.domain.results import ProbeReport
from tests.application import test_measuring as measuring
from tests.application.conftest import World
from tests.callers import TESTER
from tests.fakes.workers import result
from tests.repositories import NewCommit, build_repository


def begin(world: World, **change: object) -> str:
    id = world.submit(**change).id
    world.workers.prepare(world.flow)
    return id


def ended_with_suspects(world: World, id: str, first_bad: int) -> Bisection:
    found = world.flow.bisection(id)
    assert found.state is BisectionState.SUSPECTS
    assert found.answer is not None
    assert world.shas[first_bad] in found.answer.shas
    assert len(found.answer.shas) == found.candidates_left
    assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]
    return found


@pytest.mark.parametrize("width", [1, 3])
def test_so_many_probes_are_tried_and_no_more(world: World, width: int) -> None:
    id = begin(world, width=width, budget=BudgetForm(probes=4))
    world.workers.work(world.flow, world.truth(13))
    found = ended_with_suspects(world, id, 13)
    assert len(world.workers.seen) == 4
    assert found.answer is not None
    assert len(found.answer.shas) < 19
    assert "the budget of 4 probes is spent (4 probes in" in found.answer.why
    report = world.flow.report(id)
    (command,) = [line for line in report.explanation if "firstbad extend" in line]
    enough = re.fullmatch(f"It goes on where it is with: firstbad extend {id} --probes ([0-9]+)", command)
    assert (report.spent.probes, report.spent.gpu_s) == (4, 0.0)
    (event,) = [event for event in world.flow.events(id) if event.kind == "budget"]
    assert event.data["spent"]["probes"] == 4  # type: ignore[index]
    assert enough is not None
    world.flow.extend(id, Budget(probes=int(enough[1])), TESTER)
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_of_many_suspects_the_first_and_the_last_are_named(world: World, tmp_path: Path) -> None:
    many = build_repository(tmp_path / "many", [NewCommit(f"{n}", files={"n": str(n)}) for n in range(130)])
    id = begin(world, repo=str(tmp_path / "many"), good=(many[0],), bad=many[-1], budget=BudgetForm(probes=2))
    world.workers.work(world.flow, lambda sha: int(sha != many[0]))
    found = world.flow.bisection(id)
    assert found.answer is not None
    assert (found.state, found.candidates_left) == (BisectionState.SUSPECTS, 129)
    assert found.answer.shas == (*many[1:51], *many[-50:])
    report = world.flow.report(id)
    assert report.headline == "one of 129 commits is the first bad one"
    spent, command, *listed = report.explanation
    assert "129" not in spent and command.endswith(f"firstbad extend {id} --probes 10")
    assert [line[:10] for line in (*listed[:5], *listed[6:])] == [sha[:10] for sha in (*many[1:6], *many[-5:])]
    assert listed[5] == "… and 119 between"


def test_the_last_probe_that_a_budget_allows_may_find_the_answer(world: World) -> None:
    begin(world)
    world.workers.work(world.flow, world.truth(13))
    id = begin(world, budget=BudgetForm(probes=len(world.workers.seen)))
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_a_budget_that_is_spent_before_the_ends_are_checked_says_so(world: World) -> None:
    id = begin(world, budget=BudgetForm(wall="1m"))
    world.workers.run(world.flow, world.truth(13))
    world.clock.pass_(61)
    world.flow.sweep()
    found = world.flow.bisection(id)
    assert found.state is BisectionState.CANCELLED
    assert found.problem is not None
    assert found.problem.slug == "budget-spent"
    assert "1 min 0 s of time" in found.problem.detail
    assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]


def test_time_ends_it_without_a_result_and_stops_what_runs(world: World) -> None:
    id = begin(world, budget=BudgetForm(wall="10m"))
    for _ in range(3):
        world.workers.run(world.flow, world.truth(13))
    order = world.workers.start(world.flow)
    world.clock.pass_(599)
    world.flow.sweep()
    assert world.flow.bisection(id).state is BisectionState.SEARCHING
    world.clock.pass_(2)
    world.flow.sweep()
    found = ended_with_suspects(world, id, 13)
    assert ("probe", order.probe, order.attempt) in world.workers.cancelled
    assert "10 min 0 s of time" in (found.answer.why if found.answer else "")


def test_seconds_in_which_it_was_paused_are_not_spent(world: World) -> None:
    id = begin(world, budget=BudgetForm(wall="10m"))
    world.flow.pause(id, "me")
    world.clock.pass_(3600)
    world.flow.sweep()
    world.flow.resume(id, "me")
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND
    assert world.flow.report(id).spent.wall_s < 60


def test_time_ends_what_could_not_even_begin(world: World) -> None:
    id = world.submit(budget=BudgetForm(wall="1m")).id
    world.clock.pass_(61)
    world.flow.sweep()
    found = world.flow.bisection(id)
    assert (found.state, found.problem and found.problem.slug) == (BisectionState.CANCELLED, "budget-spent")
    world.workers.prepare(world.flow)
    assert world.flow.probes(id) == ()


@pytest.fixture
def cards(world: World) -> World:
    """With a node of four GPUs, and a recipe that wants two."""
    gpus = tuple(Gpu(index, "H100", "h100", 80 * 2**30) for index in range(4))
    world.flow.node(Node("n1", 4, world.clock.now(), "alive", gpus=gpus), booted=False)
    recipe = replace(world.flow.ports.recipes["source"], resources=Resources(gpus=2))
    world.flow.ports.recipes["gpus"] = recipe
    return world


def test_gpu_seconds_of_all_attempts_are_spent(cards: World) -> None:
    id = begin(cards, project="gpus", budget=BudgetForm(gpu_hours=0.1))
    truth, spent = cards.truth(13), 0.0
    while cards.workers.probes:
        order = cards.workers.start(cards.flow)
        cards.clock.pass_(50)
        report = replace(result(order, truth(order.source.sha)), gpu_leased_s=100.0, gpu_used_s=60.0)
        for _ in range(2):
            # The second time it is a stale one.
            cards.flow.probed(report)
        spent += 100.0
    assert spent == 400.0
    found = ended_with_suspects(cards, id, 13)
    assert "6 min 0 s of GPUs" in (found.answer.why if found.answer else "")
    assert cards.flow.report(id).spent.gpu_s == 400.0
    assert [probe.gpu_used_s for probe in cards.flow.probes(id)] == [60.0] * 4


@pytest.mark.parametrize(("leased", "used"), [(1e9, 1e9), (20.0, 1e9), (-1e300, 5.0), (0.0, -1e300)])
def test_no_node_holds_more_cards_than_it_was_given_for_longer_than_it_had_them(
    cards: World, leased: float, used: float
) -> None:
    begin(cards, project="gpus")
    order = cards.workers.start(cards.flow)
    cards.clock.pass_(10)
    report = result(order, cards.truth(13)(order.source.sha))
    cards.flow.probed(replace(report, gpu_leased_s=leased, gpu_used_s=used))
    probe = cards.flow.probe(order.probe)
    assert 0.0 <= probe.gpu_used_s <= probe.gpu_leased_s <= 20.1
    assert probe.gpu_leased_s == pytest.approx(min(max(leased, 0.0), 20.0), abs=0.1)


def test_the_cards_of_what_runs_are_spent_while_it_runs_and_kept_when_it_is_lost(cards: World) -> None:
    id = begin(cards, project="gpus", budget=BudgetForm(gpu_hours=1))
    order = cards.workers.start_with_cards(cards.flow)
    cards.clock.pass_(600)
    assert cards.flow.report(id).spent.gpu_s == pytest.approx(1200, abs=1)
    cards.workers.carries = False
    cards.flow.sweep()
    cards.clock.pass_(31)
    cards.flow.sweep()
    assert cards.flow.probe(order.probe).state is ProbeState.QUEUED
    assert cards.flow.report(id).spent.gpu_s == pytest.approx(1200, abs=1)
    cards.workers.carries = True
    cards.workers.probes = cards.workers.probes[-1:]
    cards.workers.start_with_cards(cards.flow)
    cards.clock.pass_(1201)
    cards.flow.sweep()
    assert cards.flow.bisection(id).state is BisectionState.CANCELLED
    assert cards.flow.report(id).spent.gpu_s == pytest.approx(3602, abs=1)


def test_waiting_for_cards_on_the_node_costs_none(cards: World) -> None:
    id = begin(cards, project="gpus", budget=BudgetForm(gpu_hours=1))
    order = cards.workers.start(cards.flow)
    cards.clock.pass_(7200)
    cards.flow.sweep()
    assert cards.flow.bisection(id).state is BisectionState.CHECKING_ENDS
    assert cards.flow.report(id).spent.gpu_s == 0.0
    cards.flow.started("probe", order.probe, order.attempt, "n1", leased=True)
    cards.clock.pass_(100)
    cards.flow.started("probe", order.probe, order.attempt, "n1")
    assert cards.flow.report(id).spent.gpu_s == pytest.approx(200, abs=1)
    cards.flow.cancel(id, "me")
    assert cards.flow.report(id).spent.gpu_s == pytest.approx(200, abs=1)


def test_the_next_attempt_costs_none_before_it_holds_its_cards(cards: World) -> None:
    id = begin(cards, project="gpus", budget=BudgetForm(gpu_hours=1))
    order = cards.workers.probes.pop(0)
    cards.flow.started("probe", order.probe, order.attempt, "n1", leased=True)
    assert cards.flow.probe(order.probe).state is ProbeState.RUNNING, "the first message is read later"
    cards.flow.probed(ProbeReport(order.probe, order.attempt, "n1", fault=Fault("lost", "gone"), gpu_leased_s=0.0))
    cards.workers.start(cards.flow)
    cards.clock.pass_(600)
    assert cards.flow.report(id).spent.gpu_s == 0.0


@pytest.mark.parametrize("paused", [False, True])
def test_the_time_since_its_end_is_not_spent_by_one_that_is_judged_again(world: World, paused: bool) -> None:
    id = begin(world, budget=BudgetForm(wall="1h"))
    while world.flow.bisection(id).candidates_left != 2:
        world.workers.run(world.flow, world.truth(13))
    order = world.workers.start(world.flow)
    if paused:
        world.flow.pause(id, "me")
    world.flow.probed(result(order, world.truth(13)(order.source.sha)))
    assert world.flow.bisection(id).state is BisectionState.FOUND
    world.clock.pass_(86400)
    with world.flow.ports.bisections.transaction() as tx:
        for probe in tx.probes(id):
            if probe.purpose is Purpose.SEARCH and probe.outcome is not None:
                tx.save_probe(replace(probe, outcome=replace(probe.outcome, exit_status=1)))
    world.flow.judge_again(id)
    world.flow.sweep()
    again = world.flow.bisection(id)
    assert (again.state, again.paused_at) == (BisectionState.SEARCHING, None), again.answer
    assert world.flow.report(id).spent.wall_s < 60


def test_of_a_number_the_suspects_are_the_commits_that_it_may_be(world: World) -> None:
    id = measuring.begin(world, budget=Budget(probes=9))
    measuring.run(world, measuring.dropping(13))
    found = ended_with_suspects(world, id, 13)
    assert 1 < len(found.answer.shas if found.answer else ()) < 19
    assert world.flow.report(id).spent.probes == len(world.workers.seen) == 9
