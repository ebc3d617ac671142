"""What two processes do at the same moment, on both databases: no deadlock, and nothing that one wrote is undone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.domain.results import BuildReport, WheelFacts
from tests.application.conftest import World
from tests.fakes.workers import result

TRIES = 12


def at_once(*calls: Callable[[], object]) -> None:
    """Runs all in threads that start together. Any error of theirs is the test's."""
    barrier, errors = threading.Barrier(len(calls)), []

    def run(call: Callable[[], object]) -> None:
        barrier.wait()
        try:
            call()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_cancel_and_the_end_of_the_build(world: World) -> None:
    for number in range(TRIES):
        id = world.submit(project="python", env={"TRY": str(number)}).id
        world.workers.prepare(world.flow)
        order = world.workers.builds.pop()
        wheel = WheelFacts("p-1.whl", "wheels/p-1.whl", 1, "0")
        report = BuildReport(order.key, order.attempt, "n1", 1.0, wheel=wheel)
        at_once(lambda: world.flow.cancel(id, "me"), lambda: world.flow.built(report))  # noqa: B023
        assert world.flow.bisection(id).state is BisectionState.CANCELLED
        assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]


def test_a_start_that_is_told_while_the_end_is(world: World) -> None:
    for _ in range(TRIES):
        id = world.submit().id
        world.workers.prepare(world.flow)
        order = world.workers.probes.pop()
        started = lambda: world.flow.started("probe", order.probe, order.attempt, "n1")  # noqa: B023, E731
        at_once(started, lambda: world.flow.probed(result(order, 1)))  # noqa: B023
        assert world.flow.probe(order.probe).state is ProbeState.JUDGED
        world.flow.cancel(id, "me")
        world.workers.probes.clear()


def test_a_cancel_and_a_verdict(world: World) -> None:
    for _ in range(TRIES):
        id = world.submit().id
        world.workers.prepare(world.flow)
        order = world.workers.probes.pop()
        at_once(lambda: world.flow.cancel(id, "me"), lambda: world.flow.probed(result(order, 1)))  # noqa: B023
        assert world.flow.bisection(id).state is BisectionState.CANCELLED
        assert not [probe for probe in world.flow.probes(id) if probe.state in LIVE_PROBES]
        world.workers.probes.clear()


def test_sweeps_and_results(world: World) -> None:
    id = world.submit(width=4).id
    world.workers.prepare(world.flow)
    truth = world.truth(13)
    while world.workers.probes:
        orders, world.workers.probes = world.workers.probes, []
        reports = [result(order, truth(order.source.sha)) for order in orders]
        at_once(world.flow.sweep, *[lambda report=report: world.flow.probed(report) for report in reports])
    answer = world.flow.bisection(id).answer
    assert answer is not None
    assert answer.shas == (world.shas[13],)


def test_words_about_two_bisections_that_want_the_same_wheels_in_another_order(world: World) -> None:
    for number in range(TRIES):
        first, second = (with_two_wheels(world, number) for _ in range(2))
        with world.flow.ports.bisections.transaction() as tx:
            one, other = tx.probes(second)
            tx.save_probe(replace(one, sha=other.sha, build_key=other.build_key))
            tx.save_probe(replace(other, sha=one.sha, build_key=one.build_key))
        for say in (world.flow.pause, world.flow.resume, world.flow.cancel):
            at_once(lambda: say(first, "me"), lambda: say(second, "me"))  # noqa: B023
        assert {world.flow.bisection(id).state for id in (first, second)} == {BisectionState.CANCELLED}
        world.workers.builds.clear()


def with_two_wheels(world: World, number: int) -> str:
    """Both of its ends wait for their wheels."""
    id = world.submit(project="python", width=2, env={"TRY": str(number)}).id
    world.workers.prepare(world.flow)
    return id
