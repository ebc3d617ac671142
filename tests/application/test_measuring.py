"""A number that got worse, through the whole flow: in which order it is measured, on what, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from service.application.curve import Curve
from service.application.ordered import (
    ProbeOrder,
)
from service.domain.bisection import Bisection, Gpu, Node, Probe, Problem, Purpose
from service.domain.evidence import Outcome, Verdict
from service.domain.lifecycle import BisectionState
from service.domain.metric import Better, Measurement, Measuring, Metric, Threshold
from tests.application.conftest import World

GOOD = Outcome("script", exit_status=0)
RATE = Metric(Better.HIGHER, pattern="x", name="rate", unit="tok/s")
Value = Callable[[int, str], float]


def begin(world: World, metric: Metric = RATE, measuring: Measuring | None = None, **request: object) -> str:
    id = world.submit().id
    with world.flow.ports.bisections.transaction() as tx:
        found = tx.bisection(id)
        asked = replace(found.request, metric=metric, measuring=measuring or Measuring(), **request)
        tx.save_bisection(replace(found, request=asked, budget=asked.budget))
    world.workers.prepare(world.flow)
    return id


def outcome(value: float | None, **facts: str) -> Outcome:
    problem = "" if value is not None else "the pattern 'x' matches nothing in the output"
    found = Measurement("rate", value, "tok/s", 1, problem)
    return replace(GOOD, measurements=(found,), environment=facts)


def number(world: World, order: ProbeOrder) -> int:
    return world.shas.index(order.source.sha)


def dropping(at: int, step: float = 10.0, noise: float = 1.0, seed: int = 1) -> Value:
    draw = np.random.default_rng(seed)
    return lambda commit, node: float(draw.normal(100.0 - step * (commit >= at), noise))


def run(world: World, value: Value, limit: int = 300, **facts: str) -> None:
    """Answers every probe at once, on the node that it is meant for."""
    for _ in range(limit):
        if not world.workers.probes:
            return
        order = world.workers.probes[0]
        node = order.target or "n1"
        world.workers.observe(world.flow, outcome(value(number(world, order), node), **facts), node)
    raise AssertionError("probes without end")


def node(world: World, name: str, hardware: str = "EPYC, 64 CPUs", gpus: int = 0, out: str = "") -> None:
    cards = tuple(Gpu(index, "NVIDIA H100", "nvidia-h100", 80 << 30) for index in range(gpus))
    facts = {"hardware": hardware}
    seen = Node(name, 1, world.clock.now(), "alive", facts=facts, gpus=cards)
    world.flow.node(seen, booted=False)
    if out:
        with world.flow.ports.bisections.transaction() as tx:
            tx.save_node(replace(seen, out=out))


def found(world: World, id: str) -> Bisection:
    return world.flow.bisection(id)


def refusal(world: World, id: str) -> Problem:
    bisection = found(world, id)
    assert bisection.state is BisectionState.REFUSED, bisection.state
    assert bisection.problem is not None
    return bisection.problem


def purposes(world: World, id: str) -> list[str]:
    return [
        "B" if p.purpose is Purpose.BAD_END else "A" if p.purpose is Purpose.GOOD_END else "."
        for p in probes(world, id)
    ]


def probes(world: World, id: str) -> tuple[Probe, ...]:
    return world.flow.probes(id)


def test_the_ends_are_measured_in_turn_and_one_run_at_a_time(world: World) -> None:
    id = begin(world)
    value = dropping(13, step=2.0)
    while found(world, id).state is BisectionState.CHECKING_ENDS:
        assert len(world.workers.probes) == 1
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    ends = "".join(purposes(world, id))
    assert ends.startswith("BAABBAAB") and set(ends[:-1]) == {"A", "B"}


def test_the_commit_is_named_with_its_size_and_how_sure_that_is(world: World) -> None:
    id = begin(world)
    run(world, dropping(13))
    bisection = found(world, id)
    assert bisection.answer is not None and bisection.answer.shas == (world.shas[13],)
    assert bisection.answer.confidence is not None and 0.95 <= bisection.answer.confidence <= 0.999
    assert re.search(r"rate is [\d.]+ % \([\d.]+ to [\d.]+ %\) worse", bisection.answer.why)
    assert f"{len(probes(world, id))} runs of" in bisection.answer.why
    told = " ".join(world.flow.report(id).explanation)
    assert "At the ends rate is" in told and "one run varies by" in told
    assert re.search(r"a search takes about \d+ runs", told)


def test_where_lower_is_better_a_rise_is_found(world: World) -> None:
    id = begin(world, replace(RATE, better=Better.LOWER))
    rise = dropping(7, step=-10.0)
    run(world, rise)
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[7],)


def test_verdicts_of_commits_are_those_of_the_answer(world: World) -> None:
    id = begin(world)
    run(world, dropping(13))
    for probe in probes(world, id):
        expected = Verdict.BAD if world.shas.index(probe.sha) >= 13 else Verdict.GOOD
        assert probe.verdict in (expected, None)
        assert probe.reason.startswith("measured ") and "tok/s" in probe.reason
    assert {probe.verdict for probe in probes(world, id) if probe.purpose is not Purpose.SEARCH} == {
        Verdict.GOOD,
        Verdict.BAD,
    }


def test_ends_that_do_not_differ_are_refused_with_both_samples_and_what_would_have_been_seen(world: World) -> None:
    id = begin(world, measuring=Measuring(runs=6))
    run(world, dropping(13, step=0.0))
    problem = refusal(world, id)
    assert problem.title == "The ends do not differ" and problem.field == "metric"
    assert "good end" in problem.detail and "bad end" in problem.detail and "would have been seen" in problem.detail
    assert sum(p.sha == world.shas[0] for p in probes(world, id)) == 6


def test_a_number_that_is_better_at_the_bad_end_asks_whether_the_other_way_was_meant(world: World) -> None:
    id = begin(world)
    run(world, dropping(13, step=-20.0))
    problem = refusal(world, id)
    assert problem.field == "metric.better" and problem.value == "higher"
    assert "did you mean better: lower?" in problem.advice


def test_ends_in_different_units_are_refused_with_both_units(world: World) -> None:
    id = begin(world)
    world.workers.observe(world.flow, outcome(12.0))
    in_ms = replace(outcome(12.0), measurements=(Measurement("rate", 12.0, "tok/ms", 1),))
    world.workers.observe(world.flow, in_ms)
    problem = refusal(world, id)
    assert "tok/s" in problem.detail and "tok/ms" in problem.detail
    assert (problem.field, problem.value) == ("good", "tok/ms")


def test_a_commit_in_another_unit_is_skipped_and_says_so(world: World) -> None:
    id = begin(world)
    value = dropping(13)
    for _ in range(100):
        if not world.workers.probes:
            break
        commit = number(world, world.workers.probes[0])
        told = outcome(value(commit, "n1"))
        if commit == 12:
            told = replace(told, measurements=(Measurement("rate", 0.1, "tok/ms", 1),))
        world.workers.observe(world.flow, told)
    skipped = [probe for probe in probes(world, id) if probe.verdict is Verdict.SKIP]
    assert skipped and all("the other runs are in tok/s" in probe.reason for probe in skipped)
    answer = found(world, id).answer
    assert answer is not None and set(answer.shas) <= {world.shas[12], world.shas[13]}


def test_an_end_without_a_number_is_refused_with_the_reason(world: World) -> None:
    id = begin(world)
    world.workers.observe(world.flow, outcome(None))
    problem = refusal(world, id)
    assert "matches nothing" in problem.detail and problem.value == world.shas[-1]


def test_a_share_of_a_good_end_that_is_zero_is_refused(world: World) -> None:
    id = begin(world, replace(RATE, better=Better.LOWER, threshold=Threshold(0.05)))
    run(world, lambda commit, node: 0.0 if commit < 13 else 5.0)
    problem = refusal(world, id)
    assert problem.field == "metric.threshold" and problem.value == "0"


@pytest.mark.parametrize("values", [(-3.0, -5.0), (0.0, -2.0), (0.75, 0.62)])
def test_numbers_that_never_vary_are_told_apart_whatever_their_sign(world: World, values: tuple[float, float]) -> None:
    id = begin(world)
    run(world, lambda commit, node: values[commit >= 13])
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[13],)
    assert len(probes(world, id)) < 30


def test_an_end_is_measured_again_after_so_many_commits(world: World) -> None:
    id = begin(world, measuring=Measuring(recheck=3))
    run(world, dropping(13, step=2.0, seed=3))
    order = "".join(purposes(world, id))
    searched = order[order.index(".") :]
    assert "...." not in searched
    ends = [letter for letter in searched if letter != "."]
    assert ends and all(one != other for one, other in zip(ends, ends[1:], strict=False))


def test_every_run_is_on_the_node_of_the_first_and_on_its_cards(world: World) -> None:
    for name in ("n1", "n2"):
        node(world, name, gpus=4)
    with world.flow.ports.bisections.transaction() as tx:
        before = tx.nodes()
    assert len(before) == 2
    id = begin(world)
    with world.flow.ports.bisections.transaction() as tx:
        bisection = tx.bisection(id)
        tx.save_bisection(replace(bisection, setup=replace(bisection.setup, gpu_class="nvidia-h100")))
    run(world, dropping(13), gpu_indexes="1,3")
    first, *rest = world.workers.seen
    assert first.target is None and first.cards == ()
    assert {order.target for order in rest} == {"n1"}
    assert {order.cards for order in rest} == {(1, 3)}


def test_a_node_that_is_gone_is_stood_in_for_by_one_of_the_same_hardware_where_both_ends_come_first(
    world: World,
) -> None:
    node(world, "n1")
    node(world, "a-other", hardware="Xeon, 8 CPUs")
    node(world, "n2")
    id = begin(world)
    value = dropping(13, step=3.0)

    def elsewhere(commit: int, name: str) -> float:
        return value(commit, name) * (0.8 if name == "n2" else 1.0)

    while found(world, id).state is BisectionState.CHECKING_ENDS:
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(elsewhere(number(world, order), "n1")), "n1")
    node(world, "n1", out="its disk is full")
    world.flow.sweep()
    # What lay in the queue of the node that is out was sent once more.
    world.workers.probes[:] = world.workers.probes[-1:]
    assert world.workers.probes[0].target == "n2"
    begun = len(world.workers.seen)
    run(world, elsewhere)
    targets = [order.target for order in world.workers.seen[begun:]]
    assert set(targets) == {"n2"}
    first = [world.shas.index(order.source.sha) for order in world.workers.seen[begun + 1 : begun + 5]]
    assert sorted(first) == [0, 0, 19, 19]
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[13],)


def test_without_a_node_of_the_same_hardware_it_waits_and_says_for_what(world: World) -> None:
    node(world, "n1")
    node(world, "other", hardware="Xeon, 8 CPUs")
    id = begin(world)
    value = dropping(13)
    for _ in range(4):
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    node(world, "n1", out="its disk is full")
    for _ in range(3):
        world.flow.sweep()
    assert len(world.workers.probes) == 1 and world.workers.probes[0].target == "n1"
    (said,) = [line for line in world.flow.report(id).explanation if line.startswith("waits for n1")]
    assert "EPYC, 64 CPUs" in said and "its disk is full" in said
    node(world, "n2")
    world.flow.sweep()
    assert world.workers.probes[-1].target == "n2"


def test_two_nodes_of_the_same_hardware_measure_at_once(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        node(world, name, hardware="Xeon" if name == "n3" else "EPYC")
    id = begin(world, width=2)
    value = dropping(13, step=2.0)
    most = 0
    for _ in range(200):
        if not world.workers.probes:
            break
        most = max(most, len(world.workers.probes))
        targets = [order.target for order in world.workers.probes]
        assert len(set(targets)) == len(targets)
        order = world.workers.probes[0]
        name = order.target or "n1"
        slower = 0.9 if name == "n2" else 1.0
        world.workers.observe(world.flow, outcome(value(number(world, order), name) * slower), name)
    assert most == 2
    assert {order.target for order in world.workers.seen} == {None, "n1", "n2"}
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[13],)


def test_after_a_fault_a_run_goes_to_no_node_of_other_hardware(world: World) -> None:
    for name in ("n1", "n2"):
        node(world, name, hardware="Xeon" if name == "n2" else "EPYC")
    begin(world)
    value = dropping(13)
    for _ in range(2):
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    order = world.workers.fault(world.flow)
    world.wait_for_retry()
    (again,) = world.workers.probes
    assert (again.probe, again.attempt, again.target) == (order.probe, order.attempt + 1, "n1")


def test_a_run_while_the_card_throttled_is_marked_and_counts(world: World) -> None:
    id = begin(world)
    run(world, dropping(13), throttled="power cap")
    assert all("; throttled: power cap" in probe.reason for probe in probes(world, id))
    assert found(world, id).answer is not None


def test_runs_on_a_node_that_drifted_are_dropped_and_the_report_says_so(world: World) -> None:
    id = begin(world, measuring=Measuring(recheck=3))
    value = dropping(13, step=4.0, noise=1.0, seed=5)
    count = 0

    def drifting(commit: int, name: str) -> float:
        nonlocal count
        count += 1
        return value(commit, name) * (0.7 if count > 14 else 1.0)

    run(world, drifting)
    told = world.flow.report(id).explanation
    dropped = [probe for probe in probes(world, id) if "dropped, since" in probe.reason]
    assert dropped and all(probe.verdict is None for probe in dropped)
    assert any("not count, since" in line for line in told)
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[13],)


def measured_ends(world: World, id: str, value: Value) -> None:
    while found(world, id).state is BisectionState.CHECKING_ENDS:
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))


def crash(world: World) -> None:
    world.workers.observe(world.flow, replace(GOOD, exit_status=1))


def no_number(world: World) -> None:
    world.workers.observe(world.flow, outcome(None))


def disk_full(world: World) -> None:
    world.workers.fault(world.flow)
    world.wait_for_retry()


@pytest.mark.parametrize("breaks", [crash, no_number, disk_full])
def test_an_end_that_cannot_be_measured_any_more_ends_the_bisection(
    world: World, breaks: Callable[[World], None]
) -> None:
    id = begin(world, measuring=Measuring(recheck=2))
    value = dropping(13, step=2.0)
    measured_ends(world, id, value)
    for _ in range(60):
        if not world.workers.probes:
            break
        order = world.workers.probes[0]
        if number(world, order) in (0, 19):
            breaks(world)
        else:
            world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    bisection = found(world, id)
    assert bisection.state is BisectionState.FAILED
    assert bisection.problem is not None and "measured" in bisection.problem.detail
    assert "times before, and now it cannot be" in bisection.problem.detail


def test_a_machine_that_drifts_while_the_ends_are_measured_is_refused(world: World) -> None:
    id = begin(world, measuring=Measuring(runs=12))
    draw, count = np.random.default_rng(4), 0

    def slower_and_slower(commit: int, name: str) -> float:
        nonlocal count
        count += 1
        return float(draw.normal(100.0 - 1.0 * (commit >= 13), 0.5)) * 0.98**count

    run(world, slower_and_slower)
    assert refusal(world, id).title in ("The machine drifts while the ends are measured", "The ends do not differ")
    assert len(probes(world, id)) <= 30


def test_before_an_answer_is_given_an_end_is_measured_once_more(world: World) -> None:
    id = begin(world)
    run(world, dropping(13))
    assert probes(world, id)[-1].purpose in (Purpose.GOOD_END, Purpose.BAD_END)
    assert found(world, id).answer is not None


def test_a_machine_that_got_slower_before_the_first_check_names_no_innocent(world: World) -> None:
    """Without the last check the first candidates would look bad."""
    id = begin(world)
    value = dropping(17, step=6.0)
    begun = [0]

    def slow_from_then_on(commit: int, name: str) -> float:
        begun[0] += 1
        return value(commit, name) - 6.0 * (begun[0] > 9)

    run(world, slow_from_then_on)
    answer = found(world, id).answer
    assert answer is None or world.shas[17] in answer.shas
    assert any("dropped, since" in probe.reason for probe in probes(world, id))


def test_a_commit_that_meets_only_faults_is_gone_round(world: World) -> None:
    id = begin(world)
    value = dropping(13, step=2.0)
    for _ in range(100):
        if not world.workers.probes:
            break
        commit = number(world, world.workers.probes[0])
        if commit in (9, 10):
            disk_full(world)
        else:
            world.workers.observe(world.flow, outcome(value(commit, "n1")))
    answer = found(world, id).answer
    assert answer is not None and world.shas[13] in answer.shas


def test_the_curve_shows_every_commit_that_was_measured_and_the_step(world: World) -> None:
    id = begin(world)
    assert world.flow.curve(id).points == ()
    run(world, dropping(13))
    curve: Curve = world.flow.curve(id)
    positions = [point.position for point in curve.points]
    assert positions == sorted(positions) and positions[0] == 0 and positions[-1] == curve.candidates == 19
    assert (curve.name, curve.unit, curve.left) == ("rate", "tok/s", None)
    assert sum(len(point.runs) for point in curve.points) == len(probes(world, id))
    (step,) = curve.steps
    assert (step.shas, step.first, step.last, step.relative) == ((world.shas[13],), 13, 13, True)
    assert 0.08 < step.size.estimate < 0.12
    assert len(curve.good.values) >= 4 and curve.good.level is not None
    assert world.shas[13][:10] in curve.headline


def test_a_number_that_falls_little_by_little_is_blamed_on_no_commit(world: World) -> None:
    id = begin(world)
    draw = np.random.default_rng(1)
    run(world, lambda commit, name: float(draw.normal(100.0 - 10.0 * commit / 19, 1.0)))
    bisection = found(world, id)
    assert bisection.state is BisectionState.SUSPECTS
    report = world.flow.report(id)
    assert report.headline.startswith("It got worse little by little between ")
    assert not any("little by little" in line for line in report.explanation)


def test_a_number_that_only_varies_more_is_found_and_said_to(world: World) -> None:
    id = begin(world)
    draw = np.random.default_rng(1)
    run(world, lambda commit, name: float(draw.normal(100.0, 6.0 if commit >= 13 else 0.7)))
    bisection = found(world, id)
    assert bisection.answer is not None and world.shas[13] in bisection.answer.shas
    told = [bisection.answer.why, *world.flow.report(id).explanation]
    assert any("varies more" in line for line in told) and any("not in its level" in line for line in told)


def test_metrics_that_do_not_decide_are_told_beside_the_one_that_does(world: World) -> None:
    id = begin(world, other_metrics=(Metric(Better.LOWER, pattern="y", name="ttft", unit="ms"),))
    value = dropping(13)
    for _ in range(60):
        if not world.workers.probes:
            break
        commit = number(world, world.workers.probes[0])
        told = outcome(value(commit, "n1"))
        second = Measurement("ttft", 12.0 + 3.0 * (commit >= 13), "ms", 1)
        world.workers.observe(world.flow, replace(told, measurements=(*told.measurements, second)))
    lines = [line for line in world.flow.report(id).explanation if line.startswith("Beside it, ttft is 12 ms")]
    assert len(lines) == 1 and "15 ms" in lines[0]
    assert all(len(order.metrics) == 2 for order in world.workers.seen)


def test_while_the_ends_are_measured_the_report_says_what_is_known_of_them(world: World) -> None:
    id = begin(world)
    value = dropping(13, step=1.0)
    for _ in range(4):
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    assert any("measured in turn" in line for line in world.flow.report(id).explanation)


def test_judging_an_ended_one_again_changes_nothing(world: World) -> None:
    id = begin(world)
    run(world, dropping(13))
    before = found(world, id)
    assert world.flow.judge_again(id) == ()
    assert found(world, id) == before


def test_judging_a_refused_one_again_changes_nothing(world: World) -> None:
    id = begin(world, measuring=Measuring(runs=6))
    run(world, dropping(13, step=0.0))
    before = found(world, id)
    assert before.state is BisectionState.REFUSED
    assert world.flow.judge_again(id) == ()
    assert found(world, id) == before


def test_a_crash_beside_runs_that_went_well_says_nothing_of_the_commit(world: World) -> None:
    id = begin(world)
    value = dropping(13)
    crashed: list[str] = []
    for _ in range(60):
        if not world.workers.probes:
            break
        order = world.workers.probes[0]
        commit = number(world, order)
        if commit == 0 and [seen.source.sha for seen in world.workers.seen].count(world.shas[0]) == 2:
            crashed.append(order.probe)
            world.workers.observe(world.flow, replace(outcome(None), exit_status=1))
        else:
            world.workers.observe(world.flow, outcome(value(commit, "n1")))
    assert [probe.verdict for probe in probes(world, id) if probe.id in crashed] == [None]
    answer = found(world, id).answer
    assert answer is not None and answer.shas == (world.shas[13],)


def test_an_end_that_meets_faults_alone_fails_the_bisection(world: World) -> None:
    id = begin(world)
    value = dropping(13, step=1.0)
    for _ in range(6):
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
    for _ in range(3):
        world.workers.fault(world.flow)
        world.wait_for_retry()
    bisection = found(world, id)
    assert bisection.state is BisectionState.FAILED
    assert bisection.problem is not None and "disk-full on n1" in bisection.problem.detail


def test_a_sweep_between_runs_plans_nothing_twice(world: World) -> None:
    id = begin(world)
    value = dropping(13)
    for _ in range(60):
        if not world.workers.probes:
            break
        order = world.workers.probes[0]
        world.workers.observe(world.flow, outcome(value(number(world, order), "n1")))
        count = len(probes(world, id))
        world.flow.sweep()
        assert len(probes(world, id)) == count
