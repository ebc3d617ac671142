"""What a request would come to, on real repositories and databases."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.application import dry_run
from service.application.aside import MOST, Aside, StillAtIt
from service.application.submission import ResourcesForm, Submission
from service.domain.access import Caller, Scope
from service.domain.bisection import Gpu, Node
from service.domain.lifecycle import BisectionState
from service.domain.policy import CallerPolicy
from service.domain.recipe import Resources, SandboxKind
from tests.application.conftest import World
from tests.repositories import git

ME = Caller("me", Scope.SUBMIT)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asked(world: World, **change: object) -> Submission:
    plain = Submission(
        good=(world.shas[0],), bad=world.shas[-1], repo=str(world.repository), project="source", script="true"
    )
    return replace(plain, **change)


def test_a_dry_run_tells_the_range_and_begins_nothing(world: World) -> None:
    git(world.repository, "tag", "v1.2.0", world.shas[3])
    found = world.flow.dry_run(asked(world, good=("1.2.0",)), ME)
    assert found.looked is not None
    assert [commit.sha for commit in found.looked.good] == [world.shas[3]]
    assert (found.looked.bad.sha, found.looked.bad.subject) == (world.shas[19], "commit 19")
    assert found.looked.candidates == 16
    assert found.looked.probes == pytest.approx(2 + 4)
    assert any("the tag v1.2.0" in note for note in found.notes)
    assert (found.problems, found.wheels, found.expected) == ((), None, None)
    assert world.flow.bisections() == ()


def test_what_would_be_refused_is_told_with_all_the_rest(world: World) -> None:
    found = world.flow.dry_run(asked(world, bad="nothing-like-it"), ME)
    assert [problem.slug for problem in found.problems] == ["unknown-ref"]
    assert found.looked is None and found.request.bad == "nothing-like-it"
    gone = world.flow.dry_run(asked(world, repo=str(world.repository / "none")), ME)
    assert [problem.slug for problem in gone.problems] == ["repository-unavailable"]


def test_the_policy_is_the_one_that_submitting_is_held_to(world: World) -> None:
    policy = CallerPolicy("small", sandboxes=frozenset({SandboxKind.DOCKER}))
    held = replace(world.flow.ports, policy=replace(world.flow.ports.policy, callers=(policy,)))
    found = replace(world.flow, ports=held).dry_run(asked(world), ME)
    assert [problem.field for problem in found.problems] == ["sandbox"]


def test_the_time_is_that_of_the_runs_before(world: World) -> None:
    def slow(sha: str) -> int:
        world.clock.pass_(30)
        return world.truth(first_bad=7)(sha)

    made = world.submit()
    world.workers.work(world.flow, slow)
    assert world.flow.bisection(made.id).state is BisectionState.FOUND
    found = world.flow.dry_run(asked(world), ME)
    assert found.expected is not None and found.looked is not None
    assert found.expected.least == pytest.approx(30 * found.looked.probes, rel=0.01)
    assert found.expected.most >= found.expected.least
    wider = world.flow.dry_run(asked(world, width=3), ME)
    assert wider.expected is not None and wider.expected.most < found.expected.least


def test_native_builds_are_counted_by_what_differs_and_what_is_in_stock(native: World) -> None:
    found = native.flow.dry_run(asked(native, project="native"), ME)
    assert found.wheels is not None and found.looked is not None
    assert 1 < found.wheels.natives < found.wheels.different <= found.looked.candidates
    assert (found.wheels.natives_there, found.wheels.different_there) == (None, None)
    assert found.wheels.likely == min(found.wheels.natives, -int(-found.looked.probes // 1))


def test_each_node_that_could_not_serve_it_says_why() -> None:
    gpus = tuple(Gpu(index, "NVIDIA H100 80GB HBM3", "nvidia-h100", 1) for index in range(2))
    nodes = [
        Node("able", 1, NOW, "alive", gpus=gpus, labels=("nvlink",), models=("a/b",)),
        Node("silent", 1, NOW - timedelta(minutes=5), "alive", gpus=gpus, labels=("nvlink",), models=("a/b",)),
        Node("out", 1, NOW, "alive", gpus=gpus, labels=("nvlink",), models=("a/b",), out="its card failed"),
        Node("bare", 1, NOW, "alive"),
        Node("builder", 1, NOW, "left", roles=("build",), gpus=gpus[:1], labels=("nvlink",), models=("a/b",)),
    ]
    wanted = Resources(gpus=2, gpu="H100", labels=("nvlink",), models=("a/b",))
    why = {each.node: " / ".join(each.why_not) for each in dry_run.serving(nodes, wanted, NOW)}
    assert why == {
        "able": "",
        "bare": "it lacks the labels nvlink / it lacks the models a/b / it has 0 of 2 GPUs that are H100",
        "builder": "it is left / it builds and runs no probes / it has 1 of 2 GPUs that are H100",
        "out": "it was taken out: its card failed",
        "silent": "it has said nothing for 300 s",
    }


def test_gpus_that_no_node_has_are_told(world: World) -> None:
    world.flow.node(Node("one", 1, world.clock.now(), "alive"), booted=False)
    found = world.flow.dry_run(asked(world, resources=ResourcesForm(gpus=4)), ME)
    assert [(each.node, each.why_not) for each in found.nodes] == [("one", ("it has 0 of 4 GPUs",))]


def test_a_repository_that_takes_too_long_is_left_unread(world: World) -> None:
    found = world.flow.dry_run(asked(world), ME, patience_s=0.0)
    assert found.looked is None and found.problems == ()
    assert "not read within 0 s" in found.unread


def test_what_is_under_way_is_waited_for_and_not_done_twice() -> None:
    aside, gate, begun = Aside(), threading.Event(), []

    def work() -> str:
        begun.append(1)
        gate.wait()
        return "done"

    with pytest.raises(StillAtIt):
        aside.run("a", work, 0.01)
    with pytest.raises(StillAtIt):
        aside.run("a", work, 0.01)
    gate.set()
    assert aside.run("a", lambda: "done", 10) == "done"
    assert len(begun) == 1


def test_no_more_is_done_aside_than_there_is_room_for() -> None:
    aside, gate = Aside(), threading.Event()
    for number in range(MOST):
        with pytest.raises(StillAtIt):
            aside.run(str(number), gate.wait, 0.0)
    with pytest.raises(StillAtIt):
        aside.run("one more", lambda: True, 10)
    gate.set()


def test_an_error_of_what_is_done_aside_is_raised_where_it_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Aside().run("a", (tmp_path / "none").read_text, 10)
