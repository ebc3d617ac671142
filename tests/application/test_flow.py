"""The flow on a real database and a real repository: from a submission to its answer, and what may go wrong between."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.domain.bisection import Node, Purpose
from service.domain.errors import NotFound, NotNow, UserError
from service.domain.evidence import Fault, Outcome, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from tests.application.conftest import World
from tests.fakes.workers import result


def test_a_bisection_goes_from_submission_to_the_first_bad_commit(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    report = world.flow.report(id)
    assert report.bisection.state is BisectionState.FOUND
    assert [commit.sha for commit in report.answer] == [world.shas[13]]
    assert {(proof.commit.sha, proof.probe.verdict) for proof in report.evidence} == {
        (world.shas[13], Verdict.BAD),
        (world.shas[12], Verdict.GOOD),
    }
    assert report.probes_done == len(world.workers.seen)
    assert world.shas[13][:10] in report.headline


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("first_bad", [1, 7, 19])
def test_every_width_gives_the_same_answer(world: World, width: int, first_bad: int) -> None:
    id = world.submit(width=width).id
    world.workers.work(world.flow, world.truth(first_bad))
    answer = world.flow.bisection(id).answer
    assert answer is not None
    assert answer.shas == (world.shas[first_bad],)


def test_each_commit_is_built_once_for_all_who_ask(world: World) -> None:
    ids = [world.submit(project="python").id, world.submit(project="python").id]
    world.workers.work(world.flow, world.truth(13))
    assert [world.flow.bisection(id).state for id in ids] == [BisectionState.FOUND] * 2
    keys = [order.key for order in world.workers.built]
    assert len(keys) == len(set(keys))
    assert len(world.workers.seen) == 2 * len(keys)
    assert all(order.wheel and order.wheel_sha256 for order in world.workers.seen)


def test_a_commit_that_does_not_build_is_skipped_and_not_built_again(world: World) -> None:
    id = world.submit(project="python").id
    world.workers.prepare(world.flow)
    broken = Outcome("build", exit_status=2)
    truth = world.truth(13)
    while world.workers.builds or world.workers.probes:
        if world.workers.builds and world.workers.builds[0].source.sha == world.shas[9]:
            world.workers.build(world.flow, failure=broken)
        elif world.workers.builds:
            world.workers.build(world.flow)
        else:
            world.workers.run(world.flow, truth)
    answer = world.flow.bisection(id).answer
    assert answer is not None
    assert answer.shas == (world.shas[13],)
    skipped = [probe for probe in world.flow.probes(id) if probe.verdict is Verdict.SKIP]
    assert [probe.sha for probe in skipped] == [world.shas[9]]
    assert "does not build" in skipped[0].reason
    assert [order.source.sha for order in world.workers.built].count(world.shas[9]) == 1


def test_a_failed_build_is_believed_by_the_bisection_that_saw_it_and_tried_anew_by_the_next(world: World) -> None:
    first = world.submit(project="python").id
    world.workers.prepare(world.flow)
    while world.workers.builds:
        world.workers.build(world.flow, failure=Outcome("build", exit_status=2))
    assert world.flow.bisection(first).state is BisectionState.REFUSED
    second = world.submit(project="python").id
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(second).state is BisectionState.FOUND


def test_a_wheel_that_the_store_has_lost_is_built_again(world: World) -> None:
    id = world.submit(project="python").id
    world.workers.prepare(world.flow)
    world.workers.build(world.flow)
    lost = world.workers.fault(world.flow, "missing-wheel")
    assert world.flow.probe(lost.probe).state is ProbeState.BUILDING
    assert [order.attempt for order in world.workers.builds] == [2]
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_a_search_that_met_only_faults_is_our_failure_and_names_no_suspects(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    world.workers.run(world.flow, world.truth(13))
    world.workers.run(world.flow, world.truth(13))
    while world.flow.bisection(id).state is BisectionState.SEARCHING:
        world.workers.fault(world.flow)
        world.wait_for_retry()
    found = world.flow.bisection(id)
    assert (found.state, found.answer) == (BisectionState.FAILED, None)
    assert found.problem is not None
    assert "19 candidates are left" in found.problem.detail


def test_when_only_skipped_commits_separate_good_from_bad_they_are_the_suspects(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13, at_12=125, at_13=125, at_14=125))
    found = world.flow.report(id)
    assert found.bisection.state is BisectionState.SUSPECTS
    assert [commit.sha for commit in found.answer] == list(world.shas[12:16])
    assert {proof.commit.sha for proof in found.evidence} == set(world.shas[11:16])


@pytest.mark.parametrize(
    ("change", "slug", "said"),
    [
        ({"good": ("nosuchref",)}, "unknown-ref", "nosuchref"),
        ({"bad": "f" * 40}, "unknown-ref", "ffff"),
        ({"good": ("HEAD",), "bad": "HEAD"}, "bad-range", "same commit"),
        ({"good": ("HEAD",), "bad": "HEAD~5"}, "bad-range", "comes after"),
    ],
)
def test_what_only_the_repository_can_tell_ends_as_refused(world: World, change: dict, slug: str, said: str) -> None:
    id = world.submit(**change).id
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.REFUSED
    assert found.problem is not None
    assert (found.problem.slug, said in found.problem.detail, bool(found.problem.advice)) == (slug, True, True)
    assert world.flow.probes(id) == ()


def test_a_repository_that_is_not_there_is_refused_and_leaves_no_mirror(world: World) -> None:
    id = world.submit(repo=str(world.repository) + "-gone").id
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.REFUSED
    assert found.problem is not None
    assert found.problem.slug == "repository-unavailable"
    mirrors = world.repository.parent / "mirrors"
    assert not list(mirrors.rglob("HEAD"))


@pytest.mark.parametrize("repo", ["-upload-pack=x", "ext::sh -c true", "http://example.org/x", "ftp://example.org/x"])
def test_a_transport_that_is_not_allowed_is_refused_at_the_door(world: World, repo: str) -> None:
    with pytest.raises(UserError) as caught:
        world.submit(repo=repo)
    assert caught.value.advice
    assert world.flow.bisections() == ()


def test_equal_ends_are_refused_with_both_logs(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, lambda sha: 3)
    problem = world.flow.bisection(id).problem
    assert problem is not None
    assert problem.detail.count("ended with 3") == 2


def test_a_result_of_an_older_attempt_changes_nothing(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    late = world.workers.fault(world.flow)
    world.flow.probed(result(late, 0))
    probe = world.flow.probe(late.probe)
    assert (probe.state, probe.attempt, probe.verdict) == (ProbeState.QUEUED, 2, None)
    assert "stale" in [event.kind for event in world.flow.events(id)]
    world.wait_for_retry()
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_the_same_result_three_times_counts_once(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    for _ in range(3):
        world.flow.probed(result(order, 1))
    assert len(world.flow.probes(id)) == 2
    kinds = [event.kind for event in world.flow.events(id)]
    assert (kinds.count("verdict"), kinds.count("stale")) == (1, 0)
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_three_faults_end_a_probe_as_skip_and_the_report_says_so(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    truth, middle = world.truth(13), None
    while world.workers.probes:
        order = world.workers.probes[0]
        middle = middle or (order.source.sha if world.flow.probe(order.probe).purpose is Purpose.SEARCH else None)
        if order.source.sha == middle:
            world.workers.fault(world.flow)
            world.wait_for_retry()
        else:
            world.workers.run(world.flow, truth)
    found = world.flow.bisection(id)
    assert found.answer is not None
    assert found.answer.shas == (world.shas[13],)
    faulted = next(probe for probe in world.flow.probes(id) if probe.state is ProbeState.FAULTED)
    assert (faulted.sha, faulted.verdict, len(faulted.faults)) == (middle, Verdict.SKIP, 3)
    assert "disk-full" in faulted.reason


def test_after_a_fault_the_next_attempt_waits_and_longer_the_second_time(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    for wait_s in (5, 20):
        world.workers.fault(world.flow)
        world.clock.pass_(wait_s - 1)
        world.flow.sweep()
        assert world.workers.probes == []
        world.clock.pass_(1)
        world.flow.sweep()
        assert len(world.workers.probes) == 1


def test_an_operator_s_stop_is_no_fault_of_the_probe(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    for _ in range(5):
        order = world.workers.fault(world.flow, "stopped")
    assert world.flow.probe(order.probe).state is ProbeState.QUEUED


def test_a_build_that_only_meets_faults_fails_the_bisection_and_is_tried_anew_by_the_next(world: World) -> None:
    id = world.submit(project="python").id
    world.workers.prepare(world.flow)
    for _ in range(3):
        world.workers.build(world.flow, fault=Fault("disk-full", "no space on n1", "free some"))
        world.wait_for_retry()
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.FAILED
    assert found.problem is not None
    assert "no space" in found.problem.detail
    second = world.submit(project="python").id
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(second).state is BisectionState.FOUND


def test_cancelling_stops_what_runs_and_what_comes_after(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    assert world.flow.cancel(id, "me").state is BisectionState.CANCELLED
    assert world.workers.cancelled == [("probe", order.probe, order.attempt)]
    world.flow.probed(result(order, 1))
    assert world.workers.probes == []
    assert world.flow.cancel(id, "me").state is BisectionState.CANCELLED


def test_cancelling_stops_a_build_that_nobody_else_waits_for(world: World) -> None:
    first, second = world.submit(project="python").id, world.submit(project="python").id
    world.workers.prepare(world.flow)
    world.workers.prepare(world.flow)
    world.flow.cancel(first, "me")
    assert world.workers.cancelled == []
    world.flow.cancel(second, "me")
    assert [kind for kind, _, _ in world.workers.cancelled] == ["build"]
    third = world.submit(project="python").id
    world.workers.builds.clear()
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(third).state is BisectionState.FOUND


def test_an_ended_bisection_cannot_be_cancelled(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    with pytest.raises(NotNow, match="found"):
        world.flow.cancel(id, "me")
    with pytest.raises(NotFound):
        world.flow.cancel("bnone", "me")


def test_what_a_broker_could_not_take_is_sent_by_the_sweep(world: World) -> None:
    world.workers.down = True
    id = world.submit().id
    assert world.workers.prepares == []
    world.workers.down = False
    world.flow.sweep()
    assert world.workers.prepares == [id]
    world.flow.prepare(id)
    world.workers.down = True
    order = world.workers.probes.pop()
    world.flow.probed(result(order, 1))
    world.workers.down = False
    world.flow.sweep()
    assert len(world.workers.probes) == 1
    world.flow.sweep()
    assert len(world.workers.probes) == 1


def test_an_order_that_was_lost_is_sent_again_as_another_attempt(world: World) -> None:
    """A worker may have taken it and died before it said so: no other takes that attempt."""
    world.submit()
    world.workers.prepare(world.flow)
    lost = world.workers.probes.pop()
    world.workers.carries = False
    world.flow.sweep()
    assert world.workers.probes == []
    world.clock.pass_(31)
    world.flow.sweep()
    assert [(order.probe, order.attempt) for order in world.workers.probes] == [(lost.probe, lost.attempt + 1)]
    assert world.flow.probe(lost.probe).faults == ()
    assert ("probe", lost.probe, lost.attempt) in world.workers.cancelled


def test_a_silent_node_s_probe_is_put_back_only_when_the_silence_lasts(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    world.workers.carries = False
    world.flow.sweep()
    world.clock.pass_(20)
    world.workers.carries = True
    world.flow.sweep()
    world.workers.carries = False
    world.clock.pass_(20)
    world.flow.sweep()
    assert world.flow.probe(order.probe).state is ProbeState.RUNNING
    world.clock.pass_(31)
    world.flow.sweep()
    probe = world.flow.probe(order.probe)
    assert (probe.state, probe.attempt, [fault.kind for fault in probe.faults]) == (ProbeState.QUEUED, 2, ["lost"])


def test_a_worker_that_boots_gives_back_what_its_last_life_left(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    world.flow.node(Node("n2", 1, world.clock.now(), "alive"), booted=True)
    assert world.flow.probe(order.probe).state is ProbeState.RUNNING
    world.flow.node(Node("n1", 1, world.clock.now(), "alive"), booted=True)
    assert world.flow.probe(order.probe).state is ProbeState.QUEUED


def test_a_lost_preparation_is_done_again(world: World) -> None:
    id = world.submit().id
    world.workers.prepares.clear()
    world.workers.carries = False
    world.clock.pass_(31)
    world.flow.sweep()
    assert world.workers.prepares == [id]
    world.workers.work(world.flow, world.truth(13))
    world.flow.prepare(id)
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_two_advances_at_once_plan_the_next_probe_once(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    orders = [world.workers.start(world.flow)]
    barrier = threading.Barrier(4)

    def report() -> None:
        barrier.wait()
        world.flow.probed(result(orders[0], 1))

    threads = [threading.Thread(target=report) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [probe.purpose for probe in world.flow.probes(id)] == [Purpose.BAD_END, Purpose.GOOD_END]


def test_an_error_of_ours_ends_the_bisection_as_failed(world: World) -> None:
    id = world.submit().id
    world.flow.failed(id, RuntimeError("the disk of the service is full"))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.FAILED
    assert found.problem is not None
    assert "disk of the service" in found.problem.detail


def test_a_database_that_does_not_answer_is_told_and_not_raised(world: World, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}")
    flow = replace(world.flow, ports=replace(world.flow.ports, bisections=Database(engine)))
    assert "does not answer" in str(flow.checks()["database"]())
    assert "not known: the database" in str(flow.checks()["control"]())
    assert world.flow.checks()["database"]() is None


def test_the_log_of_a_probe_that_runs_cannot_be_read_yet(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    with pytest.raises(NotNow, match="running"):
        world.flow.log(order.probe)
    world.flow.probed(result(order, 1))
    with pytest.raises(NotFound):
        list(world.flow.log(order.probe).pieces)


def test_a_lost_preparation_is_found_behind_many_newer_ones_that_wait(world: World) -> None:
    id = world.submit().id
    world.workers.prepares.clear()
    with world.flow.ports.bisections.transaction() as tx:
        found = tx.bisection(id)
        for number in range(1000):
            at = world.clock.now()
            tx.add_bisection(
                replace(found, id=f"x{number}", state=BisectionState.PREPARING, created_at=at, updated_at=at)
            )
    world.workers.carries = False
    world.clock.pass_(31)
    world.flow.sweep()
    assert id in world.workers.prepares
