"""A verdict by hand counts whatever was run, the search goes on from it, and who said it and why is kept."""

from __future__ import annotations

import pytest

from service.application.submission import BudgetForm
from service.domain.bisection import Bisection, Probe, Purpose
from service.domain.errors import BadRequest, NotNow
from service.domain.evidence import Verdict
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.domain.metric import Metric
from tests.application import test_measuring as measuring
from tests.application.conftest import World
from tests.callers import caller
from tests.repositories import NewCommit, build_repository

ANN, BOB = caller("ann"), caller("bob")


def begin(world: World, **change: object) -> str:
    id = world.submit(**change).id
    world.workers.prepare(world.flow)
    return id


def searched(world: World, first_bad: int = 13, **change: object) -> str:
    id = begin(world, **change)
    world.workers.work(world.flow, world.truth(first_bad))
    assert world.flow.bisection(id).state is BisectionState.FOUND
    return id


def say(world: World, id: str, number: int, verdict: Verdict | None, why: str = "seen on my desk") -> Bisection:
    return world.flow.override(id, world.shas[number], verdict, why, ANN)


def probes_of(world: World, id: str, number: int) -> list[Probe]:
    return [probe for probe in world.flow.probes(id) if probe.sha == world.shas[number]]


def named(found: Bisection) -> tuple[str, ...]:
    return found.answer.shas if found.answer is not None else ()


def test_a_verdict_of_a_commit_that_nobody_probed_spares_the_probe(world: World) -> None:
    id = begin(world)
    say(world, id, 13, Verdict.BAD)
    say(world, id, 12, Verdict.GOOD)
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert (found.state, named(found)) == (BisectionState.FOUND, (world.shas[13],))
    assert {probe.purpose for probe in world.flow.probes(id)} == {Purpose.GOOD_END, Purpose.BAD_END}
    assert [(said.sha, said.verdict, said.by, said.why) for said in found.overrides] == [
        (world.shas[13], Verdict.BAD, "ann", "seen on my desk"),
        (world.shas[12], Verdict.GOOD, "ann", "seen on my desk"),
    ]
    assert found.answer is not None and "by hand by ann: seen on my desk" in found.answer.why


def test_a_verdict_against_a_run_takes_the_answer_back_and_the_search_goes_on(world: World) -> None:
    id = searched(world, 2)
    taken = say(world, id, 2, Verdict.GOOD)
    assert (taken.state, taken.answer, taken.ended_at) == (BisectionState.SEARCHING, None, None)
    assert {(p.verdict, p.reason) for p in probes_of(world, id, 2)} == {
        (Verdict.GOOD, "by hand by ann: seen on my desk")
    }
    world.workers.work(world.flow, world.truth(3))
    assert named(world.flow.bisection(id)) == (world.shas[3],)
    (event,) = [event for event in world.flow.events(id) if event.kind == "override"]
    assert event.data == {
        "sha": world.shas[2],
        "verdict": "good",
        "was": "",
        "by": "ann",
        "why": "seen on my desk",
    }


def test_what_is_taken_back_is_judged_by_its_run_again(world: World) -> None:
    id = searched(world)
    say(world, id, 13, Verdict.GOOD)
    back = say(world, id, 13, None, "it was the wrong desk")
    assert (back.state, named(back)) == (BisectionState.FOUND, (world.shas[13],))
    assert {(probe.verdict, probe.reason) for probe in probes_of(world, id, 13)} == {
        (Verdict.BAD, "script ended with exit status 1")
    }
    assert [said.verdict for said in back.overrides] == [Verdict.GOOD, None]


def test_what_is_said_twice_is_kept_once_and_moves_nothing(world: World) -> None:
    id = searched(world)
    once = say(world, id, 12, Verdict.GOOD)
    events = world.flow.events(id)
    assert say(world, id, 12, Verdict.GOOD) == once
    assert say(world, id, 11, None) == once
    assert world.flow.events(id) == events
    also = world.flow.override(id, world.shas[12], Verdict.GOOD, "on mine as well", BOB)
    assert [said.by for said in also.overrides] == ["ann", "bob"]
    assert probes_of(world, id, 12)[0].reason == "by hand by bob: on mine as well"


def test_a_skip_by_hand_leaves_suspects_and_is_never_tried(world: World) -> None:
    id = begin(world)
    for number in (11, 12, 13):
        say(world, id, number, Verdict.SKIP)
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.SUSPECTS
    assert named(found) == world.shas[11:15]
    assert not any(probes_of(world, id, number) for number in (11, 12, 13))


def test_what_runs_for_the_commit_is_stopped(world: World) -> None:
    id = begin(world)
    for _ in range(2):
        world.workers.run(world.flow, world.truth(13))
    order = world.workers.start(world.flow)
    number = world.shas.index(order.source.sha)
    say(world, id, number, Verdict.GOOD if number < 13 else Verdict.BAD)
    stopped = world.flow.probe(order.probe)
    assert (stopped.state, stopped.reason) == (ProbeState.CANCELLED, "by hand by ann: seen on my desk")
    assert ("probe", order.probe, order.attempt) in world.workers.cancelled
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)
    assert len(probes_of(world, id, number)) == 1


def test_a_refusal_for_an_end_is_taken_back_when_somebody_vouches_for_it(world: World) -> None:
    id = begin(world)
    world.workers.work(world.flow, lambda sha: 1)
    assert world.flow.bisection(id).state is BisectionState.REFUSED
    going = say(world, id, 0, Verdict.GOOD, "the node was bad that day")
    assert (going.state, going.problem) == (BisectionState.SEARCHING, None)
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


@pytest.mark.parametrize(("end", "verdict", "title"), [(0, Verdict.BAD, "ends"), (19, Verdict.GOOD, "ends")])
def test_an_end_that_is_said_to_be_the_other_one_has_it_refused(
    world: World, end: int, verdict: Verdict, title: str
) -> None:
    id = begin(world)
    for _ in range(2):
        world.workers.run(world.flow, world.truth(13))
    refused = say(world, id, end, verdict)
    assert refused.state is BisectionState.REFUSED
    assert refused.problem is not None and title in refused.problem.title.lower()
    assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]
    world.workers.probes.clear()
    assert say(world, id, end, None).state is BisectionState.SEARCHING
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_both_ends_by_hand_need_no_run_of_them(world: World) -> None:
    id = begin(world)
    say(world, id, 0, Verdict.GOOD)
    say(world, id, 19, Verdict.BAD)
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)
    ended = [probe for probe in world.flow.probes(id) if probe.state is ProbeState.JUDGED]
    assert not {probe.sha for probe in ended} & {world.shas[0], world.shas[19]}


def test_what_cannot_be_true_beside_what_was_said_is_refused_with_it(world: World) -> None:
    id = begin(world)
    say(world, id, 8, Verdict.BAD, "seen by ann")
    with pytest.raises(NotNow) as refused:
        world.flow.override(id, world.shas[10], Verdict.GOOD, "it works", BOB)
    assert world.shas[8][:10] in refused.value.detail and "by ann: seen by ann" in refused.value.detail
    assert f"firstbad override {id} {world.shas[8][:10]} none" in refused.value.advice
    assert len(world.flow.bisection(id).overrides) == 1


def test_a_word_against_what_other_runs_showed_is_told_as_a_contradiction(world: World) -> None:
    id = searched(world)
    good = max(n for n in range(1, 13) if probes_of(world, id, n))
    told = say(world, id, good - 1, Verdict.BAD)
    assert told.state is BisectionState.SUSPECTS
    assert told.answer is not None and "cannot all be true" in told.answer.why


def test_of_a_flaky_failure_a_word_is_certain_and_the_commit_is_not_tried_again(world: World) -> None:
    id = begin(world, flaky=True)
    say(world, id, 14, Verdict.BAD)
    say(world, id, 11, Verdict.GOOD)
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert (found.state, named(found)) == (BisectionState.FOUND, (world.shas[13],))
    assert not probes_of(world, id, 14) and not probes_of(world, id, 11)
    say(world, id, 12, Verdict.BAD)
    world.workers.work(world.flow, world.truth(12))
    assert named(world.flow.bisection(id)) == (world.shas[12],)


def test_an_end_of_a_flaky_failure_that_did_not_show_it_goes_on_by_hand(world: World) -> None:
    id = begin(world, flaky=True)
    world.workers.work(world.flow, lambda sha: 0)
    assert world.flow.bisection(id).state is BisectionState.REFUSED
    assert say(world, id, 19, Verdict.BAD).state is BisectionState.SEARCHING
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_of_a_number_only_a_skip_is_taken_and_its_runs_do_not_count(world: World) -> None:
    id = measuring.begin(world)
    measuring.run(world, measuring.dropping(13))
    found = world.flow.bisection(id)
    assert named(found) == (world.shas[13],)
    for number, verdict in ((13, Verdict.GOOD), (0, Verdict.SKIP)):
        with pytest.raises(BadRequest, match="compares a number"):
            say(world, id, number, verdict)
    say(world, id, 13, Verdict.SKIP)
    before = len(probes_of(world, id, 13))
    measuring.run(world, measuring.dropping(13))
    after = world.flow.bisection(id)
    assert isinstance(after.request.metric, Metric)
    assert after.answer is not None and set(named(after)) == {world.shas[13], world.shas[14]}
    assert len(probes_of(world, id, 13)) == before


def test_a_commit_given_up_for_faults_counts_by_hand_and_as_before_once_that_is_taken_back(world: World) -> None:
    id = begin(world)
    for _ in range(2):
        world.workers.run(world.flow, world.truth(13))
    for _ in range(3):
        order = world.workers.fault(world.flow)
        world.wait_for_retry()
    number = world.shas.index(order.source.sha)
    (gone,) = probes_of(world, id, number)
    assert gone.state is ProbeState.FAULTED
    say(world, id, number, Verdict.GOOD if number < 13 else Verdict.BAD)
    assert probes_of(world, id, number)[0].verdict is not Verdict.SKIP
    say(world, id, number, None)
    (back,) = probes_of(world, id, number)
    assert (back.verdict, back.reason) == (gone.verdict, gone.reason)


def test_one_that_failed_for_its_nodes_goes_on(world: World) -> None:
    id = begin(world)
    for _ in range(3):
        world.workers.fault(world.flow)
        world.wait_for_retry()
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FAILED
    assert say(world, id, 19, Verdict.BAD).state is BisectionState.SEARCHING
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_a_merge_s_side_is_excluded_by_hand(world: World, tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "merged"
    commits = [
        NewCommit("base", files={"n": "0"}),
        NewCommit("main 1", files={"n": "1"}),
        NewCommit("side 1", parents=(0,), files={"s": "1"}),
        NewCommit("side 2", parents=(2,), files={"s": "2"}),
        NewCommit("merge", parents=(1, 3), files={"n": "1", "s": "2"}),
    ]
    shas = build_repository(path, commits)
    id = begin(world, repo=str(path), good=(shas[0],), bad=shas[4])
    world.flow.override(id, shas[3], Verdict.GOOD, "the branch was fine", ANN)
    world.workers.work(world.flow, lambda sha: int(sha in (shas[1], shas[4])))
    assert named(world.flow.bisection(id)) == (shas[1],)
    assert not [probe for probe in world.flow.probes(id) if probe.sha in (shas[2], shas[3])]


def test_what_is_said_while_it_is_paused_counts_and_begins_nothing(world: World) -> None:
    id = begin(world)
    for _ in range(2):
        world.workers.run(world.flow, world.truth(13))
    world.flow.pause(id, "ann")
    before = len(world.flow.probes(id))
    say(world, id, 10, Verdict.GOOD)
    assert len(world.flow.probes(id)) == before
    world.flow.resume(id, "ann")
    world.workers.work(world.flow, world.truth(13))
    assert named(world.flow.bisection(id)) == (world.shas[13],)


def test_after_a_person_s_cancel_nothing_is_taken(world: World) -> None:
    id = begin(world, budget=BudgetForm(probes=9))
    world.flow.cancel(id, "ann")
    with pytest.raises(NotNow, match="cannot go on"):
        say(world, id, 5, Verdict.GOOD)


def test_before_the_commits_are_known_nothing_can_be_said_of_them(world: World) -> None:
    with pytest.raises(NotNow, match="not looked up"):
        say(world, world.submit().id, 5, Verdict.GOOD)


@pytest.mark.parametrize("commit", ["zz", "abc", "HEAD", "0" * 40, "", "a" * 100])
def test_a_commit_that_is_none_of_the_range_is_refused(world: World, commit: str) -> None:
    id = begin(world)
    with pytest.raises(BadRequest) as refused:
        world.flow.override(id, commit, Verdict.GOOD, "x", ANN)
    assert refused.value.field == "commit"


@pytest.mark.parametrize("why", ["", "  ", "x" * 501, "bell \x07"])
def test_a_reason_that_cannot_be_kept_is_refused(world: World, why: str) -> None:
    id = begin(world)
    with pytest.raises(BadRequest) as refused:
        say(world, id, 5, Verdict.GOOD, why)
    assert refused.value.field == "why"
