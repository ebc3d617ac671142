"""Changes of what was read before, on both databases: of two that read the same, one is told that it came too late."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from service.application.adjust import Change
from service.domain.access import Scope
from service.domain.budget import Budget, Priority
from service.domain.errors import NotAllowed, NotFound, NotNow, PreconditionFailed
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState
from tests.application.conftest import World
from tests.callers import caller

ANN = caller("ann")
TRIES = 8


def outcomes(*calls: Callable[[], object]) -> list[str]:
    """Of all in threads that start together, sorted: the name of what was raised, or that it was done."""
    barrier, told = threading.Barrier(len(calls)), list[str]()

    def run(call: Callable[[], object]) -> None:
        barrier.wait()
        try:
            call()
        except Exception as error:  # noqa: BLE001
            told.append(type(error).__name__)
        else:
            told.append("done")

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(told)


def test_of_changes_of_the_same_version_at_once_only_one_is_made(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    sha = world.shas[5]
    for number in range(TRIES):
        version, before = world.flow.version(id)[0], len(world.flow.events(id))
        verdict = (Verdict.SKIP, None)[number % 2]
        hold = (world.flow.pause, world.flow.resume)[number % 2]
        assert outcomes(
            lambda: world.flow.override(id, sha, verdict, f"try {number}", ANN, version),  # noqa: B023
            lambda: world.flow.adjust(id, Change(asked=Budget(9 + number), limits=frozenset({"probes"})), ANN, version),  # noqa: B023
            lambda: hold(id, "ann", version),  # noqa: B023
        ) == ["PreconditionFailed", "PreconditionFailed", "done"]
        assert len(world.flow.events(id)) > before
        if number % 2 == 0:
            world.flow.pause(id, "ann")
            world.flow.override(id, sha, Verdict.SKIP, "for the next one to take back", ANN)
        else:
            world.flow.resume(id, "ann")
            world.flow.override(id, sha, None, "for the next one to say", ANN)


def test_two_limits_that_are_changed_at_once_are_both_kept(world: World) -> None:
    id = world.submit().id
    for number in range(1, TRIES):
        probes = Change(asked=Budget(probes=number), limits=frozenset({"probes"}))
        wall = Change(asked=Budget(wall_s=60.0 * number), limits=frozenset({"wall_s"}))
        assert outcomes(*(lambda one=one: world.flow.adjust(id, one, ANN) for one in (probes, wall))) == ["done"] * 2
        assert world.flow.bisection(id).budget == Budget(probes=number, wall_s=60.0 * number)


def test_what_has_changed_since_is_left_as_it_is_and_both_versions_are_told(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    old = world.flow.version(id)[0]
    paused = world.flow.pause(id, "bob")
    new = world.flow.version(id)[0]
    for change in (
        lambda: world.flow.cancel(id, "ann", old),
        lambda: world.flow.pause(id, "ann", old),
        lambda: world.flow.resume(id, "ann", f"{old}, 0-0"),
        lambda: world.flow.adjust(id, Change(Priority.LOW), ANN, old),
        lambda: world.flow.override(id, world.shas[5], Verdict.BAD, "seen", ANN, old),
    ):
        with pytest.raises(PreconditionFailed) as refused:
            change()
        assert old in refused.value.detail and new in refused.value.detail
    assert world.flow.bisection(id) == paused
    assert world.flow.resume(id, "ann", f"{old}, {new}").paused_at is None
    assert world.flow.cancel(id, "ann", "*").state is BisectionState.CANCELLED
    with pytest.raises(NotFound):
        world.flow.cancel("b0", "ann", old)


def test_a_budget_and_a_priority_are_changed_together_or_not_at_all(world: World) -> None:
    id = world.submit().id
    both = Change(Priority.LOW, Budget(probes=7), frozenset({"probes"}))
    changed = world.flow.adjust(id, both, ANN)
    assert (changed.priority, changed.budget) == (Priority.LOW, Budget(probes=7))
    with pytest.raises(NotAllowed):
        world.flow.adjust(id, Change(Priority.HIGH, Budget(), frozenset({"probes"})), caller("small", Scope.SUBMIT))
    assert world.flow.bisection(id) == changed
    world.flow.cancel(id, "ann")
    with pytest.raises(NotNow):
        world.flow.adjust(id, Change(Priority.NORMAL, Budget(probes=8), frozenset({"probes"})), ANN)
    assert world.flow.bisection(id).budget == Budget(probes=7)
