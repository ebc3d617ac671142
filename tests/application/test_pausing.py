"""Pausing, resuming, and that nothing is left whatever is said of bisections at random, on both databases."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.application import builds
from service.application.keys import Keys
from service.application.ordered import ProbeOrder
from service.domain.bisection import Node
from service.domain.budget import Priority
from service.domain.errors import NotFound, NotNow
from service.domain.evidence import Fault
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_BUILDS, LIVE_PROBES, BisectionState, BuildState, ProbeState
from service.domain.results import BuildReport, ProbeReport
from tests.application.conftest import World
from tests.application.native import begun, state
from tests.application.native import node as on_builders
from tests.application.test_races import at_once
from tests.callers import caller
from tests.fakes.workers import result


def begin(world: World, by: str = "me", **change: object) -> str:
    id = world.submit(by, **change).id
    world.workers.prepare(world.flow)
    return id


def searching(world: World, width: int) -> str:
    id = begin(world, width=width)
    while world.flow.bisection(id).state is not BisectionState.SEARCHING:
        world.workers.run(world.flow, world.truth(13))
    return id


def test_a_pause_takes_back_what_has_not_begun_and_lets_end_what_runs(world: World) -> None:
    id = searching(world, width=3)
    running = world.workers.start(world.flow)
    sent, world.workers.probes = world.workers.probes, []
    assert len(sent) == 2
    assert world.flow.pause(id, "ann").paused_at is not None
    assert sorted(world.workers.cancelled) == sorted(("probe", order.probe, order.attempt) for order in sent)
    for order in sent:
        # Should a worker have taken it all the same, its attempt is an old one.
        world.flow.probed(result(order, 0))
        waiting = world.flow.probe(order.probe)
        assert (waiting.state, waiting.attempt, waiting.sent_at) == (ProbeState.QUEUED, order.attempt + 1, None)
    world.flow.probed(result(running, world.truth(13)(running.source.sha)))
    assert world.flow.probe(running.probe).state is ProbeState.JUDGED
    world.clock.pass_(60)
    world.flow.sweep()
    assert world.workers.probes == []
    assert [event.data for event in world.flow.events(id) if event.kind == "paused"] == [{"by": "ann", "taken_back": 2}]
    report = world.flow.report(id)
    assert report.headline.startswith("Paused; searching")
    assert f"firstbad resume {id}" in " ".join(report.explanation)


@pytest.mark.parametrize("project", ["source", "python"])
def test_what_was_paused_at_every_step_has_the_same_answer(world: World, project: str) -> None:
    plain = begin(world, project=project, width=2, env={"TRY": "1"})
    world.workers.work(world.flow, world.truth(13))
    id = begin(world, project=project, width=2, env={"TRY": "2"})
    while world.flow.bisection(id).state in LIVE_BISECTIONS:
        world.flow.pause(id, "me")
        world.workers.builds.clear()
        world.workers.probes.clear()
        world.flow.sweep()
        assert (world.workers.builds, world.workers.probes) == ([], []), "nothing new is begun"
        world.flow.resume(id, "me")
        if world.workers.builds:
            world.workers.build(world.flow)
        if world.workers.probes:
            world.workers.run(world.flow, world.truth(13))
    answers = [world.flow.bisection(one).answer for one in (plain, id)]
    assert answers[0] is not None
    assert answers[1] is not None
    assert answers[1].shas == answers[0].shas


def test_a_pause_that_ends_what_runs_can_still_find_the_answer(world: World) -> None:
    id = searching(world, width=1)
    while world.flow.bisection(id).candidates_left != 2:
        world.workers.run(world.flow, world.truth(13))
    last = world.workers.start(world.flow)
    world.flow.pause(id, "me")
    world.flow.probed(result(last, world.truth(13)(last.source.sha)))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_seconds_of_a_pause_are_kept(world: World) -> None:
    id = begin(world)
    world.flow.pause(id, "me")
    world.clock.pass_(100)
    assert world.flow.resume(id, "me").paused_s == pytest.approx(100, abs=1)
    world.flow.pause(id, "me")
    world.clock.pass_(50)
    assert world.flow.resume(id, "me").paused_s == pytest.approx(150, abs=1)


def test_pausing_what_is_paused_and_resuming_what_is_not_changes_nothing(world: World) -> None:
    id = begin(world)
    first = world.flow.pause(id, "me")
    world.clock.pass_(10)
    assert world.flow.pause(id, "you") == first
    resumed = world.flow.resume(id, "me")
    assert world.flow.resume(id, "you") == resumed
    assert world.flow.prioritize(id, Priority.NORMAL, caller("me")) == resumed
    assert [event.kind for event in world.flow.events(id)].count("paused") == 1


def test_only_what_lives_is_paused(world: World) -> None:
    with pytest.raises(NotFound):
        world.flow.pause("nope", "me")
    id = begin(world)
    world.flow.cancel(id, "me")
    for call in (lambda: world.flow.pause(id, "me"), lambda: world.flow.resume(id, "me")):
        with pytest.raises(NotNow, match="cancelled"):
            call()
    with pytest.raises(NotNow, match="priority"):
        world.flow.prioritize(id, Priority.HIGH, caller("me"))


def test_what_waits_is_cancelled_without_a_word_to_the_broker(world: World) -> None:
    world.flow.node(Node("n1", 0, world.clock.now(), "alive"), booted=False)
    ids = [begin(world) for _ in range(4)]
    assert len(world.workers.probes) == 2
    world.flow.cancel(ids[3], "me")
    assert world.workers.cancelled == []
    world.flow.cancel(ids[0], "me")
    assert len(world.workers.cancelled) == 1
    assert world.workers.probes[-1].bisection == ids[2], "its slot is another's"


def test_a_build_goes_on_as_long_as_one_of_those_who_want_it_is_not_paused(world: World) -> None:
    first, second = begin(world, project="python"), begin(world, project="python")
    (order,) = world.workers.builds
    world.flow.pause(first, "me")
    assert world.workers.cancelled == []
    world.flow.pause(second, "me")
    assert world.workers.cancelled == [("build", order.key, order.attempt)]
    world.workers.builds.clear()
    world.flow.sweep()
    assert world.workers.builds == []
    world.flow.resume(second, "me")
    assert [(again.key, again.attempt) for again in world.workers.builds] == [(order.key, order.attempt + 1)]


def test_a_wheel_that_is_lost_is_built_again_for_who_is_not_paused(world: World) -> None:
    begin(world, project="python")
    begin(world, project="python")
    world.workers.build(world.flow)
    paused, other = world.workers.start(world.flow), world.workers.start(world.flow)
    lose_wheel(world, paused)
    world.flow.pause(paused.bisection, "me")
    world.workers.builds.clear()
    lose_wheel(world, other)
    (again,) = world.workers.builds
    assert world.flow.probe(other.probe).build_key == again.key
    world.workers.build(world.flow)
    assert [order.probe for order in world.workers.probes] == [other.probe]


def lose_wheel(world: World, order: ProbeOrder) -> None:
    world.flow.probed(ProbeReport(order.probe, order.attempt, "n1", fault=Fault("missing-wheel", "it is gone")))


def test_native_code_that_only_the_paused_wants_waits_again_when_who_hurried_it_is_cancelled(native: World) -> None:
    paused = begun(native, good=(native.shas[11],), bad=native.shas[17])
    native.flow.pause(paused.id, "me")
    native.workers.builds.clear()
    other = begun(native, good=(native.shas[11],), bad=native.shas[16])
    (order,) = native.workers.builds
    native.flow.cancel(other.id, "me")
    with native.flow.ports.bisections.transaction() as tx:
        build = tx.build(order.key)
    assert build is not None
    assert (build.state, build.held, build.sent_at) == (BuildState.QUEUED, True, None)
    assert ("build", order.key, order.attempt) in native.workers.cancelled


def test_a_build_that_runs_ahead_for_the_paused_and_is_lost_is_given_up(native: World) -> None:
    on_builders(native, 2, "build")
    id = begun(native).id
    order = next(order for order in native.workers.builds if order.ahead)
    native.flow.started("build", order.key, order.attempt, "n1")
    native.flow.pause(id, "me")
    assert state(native, order.key) is BuildState.RUNNING
    native.workers.builds.clear()
    native.flow.built(BuildReport(order.key, order.attempt, "n1", 1.0, fault=Fault("lost", "gone")))
    assert (state(native, order.key), native.workers.builds) == (BuildState.CANCELLED, [])


def test_a_wish_ahead_begins_nothing_that_only_the_paused_waits_for(native: World) -> None:
    on_builders(native, 2, "build")
    paused = begun(native, good=(native.shas[3],), bad=native.shas[5])
    native.flow.pause(paused.id, "me")
    (held,) = [build for build in native.flow.builds(paused.id) if build.state is BuildState.QUEUED]
    other = native.flow.bisection(begun(native, good=(native.shas[3],), bad=native.shas[8]).id)
    with native.flow.ports.bisections.transaction() as tx:
        build = builds.ask(tx, other, held.sha, Keys(held.key, held.native_key), native.clock.now(), ahead=True)
    assert (build.held, build.ahead, build.sent_at) == (True, False, None)


def test_who_is_paused_hurries_nothing_that_another_one_makes_ahead(native: World) -> None:
    on_builders(native, 2, "build")
    other = begun(native)
    ahead = next(build for build in native.flow.builds(other.id) if build.ahead)
    paused = begun(native, good=(native.shas[1],), bad=native.shas[5])
    native.flow.pause(paused.id, "me")
    with native.flow.ports.bisections.transaction() as tx:
        now = native.clock.now()
        build = tx.build(ahead.key, lock=True)
        assert build is not None
        tx.save_build(replace(build, ahead=True))
        waiting = next(one for one in tx.builds_of_native(ahead.native_key or "") if one.state is BuildState.WAITING)
        assert waiting.held
        builds.start(tx, waiting, now)
        left = tx.build(ahead.key)
        assert left is not None and left.ahead
        builds.release(tx, ahead.key, now)
        left = tx.build(ahead.key)
    assert left is not None and (left.ahead, left.held, left.state) == (False, True, BuildState.QUEUED)


def test_a_build_that_runs_while_its_bisection_is_paused_ends_and_its_probe_waits(world: World) -> None:
    id = begin(world, project="python")
    order = world.workers.builds[0]
    world.flow.started("build", order.key, order.attempt, "n1")
    world.flow.pause(id, "me")
    assert world.workers.cancelled == []
    world.workers.build(world.flow)
    assert world.workers.probes == []
    assert [(p.state, p.sent_at) for p in world.flow.probes(id)] == [(ProbeState.QUEUED, None)]
    world.flow.resume(id, "me")
    assert len(world.workers.probes) == 1


def test_what_is_paused_while_its_build_ends_is_not_sent(world: World) -> None:
    for number in range(8):
        id = begin(world, project="python", env={"TRY": str(number)})
        at_once(lambda: world.flow.pause(id, "me"), lambda: world.workers.build(world.flow))  # noqa: B023
        kept = [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]
        assert all(probe.held and probe.sent_at is None for probe in kept)
        world.flow.cancel(id, "me")
        world.workers.builds.clear()
        world.workers.probes.clear()


def test_what_is_paused_while_a_slot_becomes_free_for_it_is_not_sent(world: World) -> None:
    world.flow.node(Node("n1", 0, world.clock.now(), "alive"), booted=False)
    begin(world, by="other")
    for number in range(8):
        begin(world, by="other")
        id = begin(world, priority="high")
        order = world.workers.probes.pop(0)
        at_once(lambda: world.flow.pause(id, "me"), lambda: world.flow.probed(result(order, 1)))  # noqa: B023
        (kept,) = [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]
        assert (kept.held, kept.sent_at) == (True, None), f"in try {number}"
        world.workers.probes = [sent for sent in world.workers.probes if sent.bisection != id]
        assert len(world.workers.probes) == 2, "its slot went to another"


@pytest.mark.parametrize("seed", [1, 2])
def test_after_200_words_at_random_nothing_is_left(world: World, seed: int) -> None:
    dice = random.Random(seed)
    world.flow.node(Node("n1", 4, world.clock.now(), "alive"), booted=False)
    ids = [
        begin(world, by=f"user {n % 3}", width=1 + n % 3, project=("source", "python")[n % 2], env={"TRY": str(n % 4)})
        for n in range(10)
    ]
    truth = world.truth(13)
    for _ in range(200):
        say(world, dice, dice.choice(ids))
        for _ in range(dice.randrange(2)):
            if world.workers.builds:
                world.workers.build(world.flow)
            elif world.workers.probes:
                world.workers.run(world.flow, truth)
    for id in ids:
        if world.flow.bisection(id).state in LIVE_BISECTIONS:
            world.flow.resume(id, "me")
    world.flow.node(Node("n1", 4, world.clock.now(), "alive"), booted=False)
    world.workers.work(world.flow, truth)
    found = [world.flow.bisection(id) for id in ids]
    assert {one.state for one in found} <= {BisectionState.FOUND, BisectionState.CANCELLED}
    assert {one.answer.shas for one in found if one.answer} <= {(world.shas[13],)}
    with world.flow.ports.bisections.transaction() as tx:
        assert (tx.probes_in(LIVE_PROBES), tx.builds_in(LIVE_BUILDS), tx.all_out()) == ((), (), ())
        assert (tx.waiting_queues(), tx.undelivered()) == ((), ())


def say(world: World, dice: random.Random, id: str) -> None:
    what = dice.choices(("pause", "resume", "prioritize", "cancel", "sweep"), (30, 30, 20, 2, 5))[0]
    try:
        match what:
            case "prioritize":
                world.flow.prioritize(id, dice.choice(list(Priority)), caller("me"))
            case "sweep":
                world.clock.pass_(5)
                world.flow.sweep()
            case _:
                getattr(world.flow, what)(id, "me")
    except NotNow:
        assert world.flow.bisection(id).state not in LIVE_BISECTIONS


def test_a_cancel_of_the_paused_leaves_no_build(world: World) -> None:
    id = begin(world, project="python")
    world.flow.pause(id, "me")
    world.flow.cancel(id, "me")
    assert {build.state for build in world.flow.builds(id)} == {BuildState.CANCELLED}
