"""A repository whose history holds four native trees, and what tests of builds do with it."""

from __future__ import annotations

from dataclasses import replace

from service.application.submission import Submission
from service.domain.bisection import Bisection, Node, Probe
from service.domain.evidence import Outcome
from service.domain.lifecycle import BuildState
from service.domain.recipe import Recipe
from tests.application.conftest import World
from tests.callers import caller
from tests.repositories import NewCommit

#: Commits that change native code, and commits that change nothing of the wheel.
NATIVE_AT, IDLE_AT = (0, 6, 12, 18), (4, 10, 15)
RECIPE = Recipe(
    "native",
    build_command="make wheel",
    native_paths=("/csrc/**",),
    wheel_paths=("/csrc/**", "/pkg/**", "/pyproject.toml"),
)
PROJECT = '[project]\nname = "pkg"\nversion = "{version}"\n[build-system]\nrequires = ["{requires}"]\n'
UNCOMPILED = Outcome("build", exit_status=2, first_error="csrc/a.c:3:1: error: expected ';'", code_refused=True)


def commit(number: int) -> NewCommit:
    if number in IDLE_AT:
        return NewCommit(f"commit {number}", files={"docs/a.md": str(number)})
    files = {"pkg/a.py": str(number)} | ({"csrc/a.c": str(number)} if number in NATIVE_AT else {})
    first = {"pyproject.toml": PROJECT.format(version="1", requires="hatchling")} if number == 0 else {}
    return NewCommit(f"commit {number}", files=files | first)


def begun(world: World, **change: object) -> Bisection:
    submitted = submit(world, **change)
    world.workers.prepare(world.flow)
    return submitted


def submit(world: World, **change: object) -> Bisection:
    plain = Submission(
        good=(world.shas[0],), bad=world.shas[-1], repo=str(world.repository), project="native", script="true"
    )
    return world.flow.submit(replace(plain, **change), caller("me"))


def with_recipe(world: World, **change: object) -> World:
    recipes = {**world.flow.ports.recipes, "native": replace(RECIPE, **change)}  # type: ignore[arg-type]
    return replace(world, flow=replace(world.flow, ports=replace(world.flow.ports, recipes=recipes)))


def with_policy(world: World, **change: object) -> World:
    policy = replace(world.flow.ports.policy, **change)  # type: ignore[arg-type]
    return replace(world, flow=replace(world.flow, ports=replace(world.flow.ports, policy=policy)))


def node(world: World, slots: int, *roles: str) -> None:
    seen = world.clock.now()
    world.flow.node(Node(f"n-{'-'.join(roles)}", slots, seen, "alive", roles), booted=False)


def native_tree(world: World, sha: str) -> int:
    return max(number for number in NATIVE_AT if number <= world.shas.index(sha))


def probe_of(world: World, id: str, sha: str) -> Probe:
    return next(probe for probe in world.flow.probes(id) if probe.sha == sha)


def state(world: World, key: str | None) -> BuildState:
    with world.flow.ports.bisections.transaction() as tx:
        build = tx.build(key or "")
    assert build is not None
    return build.state


def two_of_one_tree(world: World) -> tuple[str, Probe, Probe]:
    """A bisection whose two ends share their native code, one of them in work, the other waiting for it."""
    id = begun(world, good=(world.shas[12],), bad=world.shas[17], width=2).id
    bad, good = world.flow.probes(id)
    assert [order.source.sha for order in world.workers.builds] == [bad.sha]
    assert state(world, good.build_key) is BuildState.WAITING
    return id, bad, good
