"""Builds as a bisection asks for them: each native tree once, everything else from its compiled files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.adapters.git_history import GitHistory
from service.application import evict
from service.application.forecast import Forecast, worth_building
from service.application.keys import Keys
from service.application.ports import Kept, StoreBusy
from service.application.report import Wheels
from service.application.submit import Submission
from service.domain.bisection import Bisection, Builder, FailureIn, Node, Origin, Probe
from service.domain.errors import NotFound
from service.domain.evidence import Fault, Log, Outcome, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.recipe import Deps, Fixup, Recipe
from service.domain.results import BuildReport, ProbeReport, SurveyReport, WheelFacts
from tests.application.conftest import World
from tests.application.test_races import at_once
from tests.fakes.workers import BUILDER
from tests.repositories import NewCommit, build_repository

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


@pytest.fixture
def native(world: World, tmp_path: Path) -> World:
    path = tmp_path / "native"
    shas = build_repository(path, [commit(number) for number in range(24)])
    ports = replace(world.flow.ports, recipes={**world.flow.ports.recipes, "native": RECIPE})
    return replace(world, flow=replace(world.flow, ports=ports), repository=path, shas=shas)


def begun(world: World, **change: object) -> Bisection:
    submitted = submit(world, **change)
    world.workers.prepare(world.flow)
    return submitted


def submit(world: World, **change: object) -> Bisection:
    plain = Submission(
        good=(world.shas[0],), bad=world.shas[-1], repo=str(world.repository), project="native", script="true"
    )
    return world.flow.submit(replace(plain, **change), "me")


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


def test_native_builds_are_as_many_as_the_native_trees_among_the_probed_commits(native: World) -> None:
    id = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(id).answer.shas == (native.shas[14],)
    compiled = [order.source.sha for order in native.workers.built if order.base is None]
    probed = {probe.sha for probe in native.flow.probes(id)}
    assert sorted(native_tree(native, sha) for sha in compiled) == sorted({native_tree(native, sha) for sha in probed})
    for order in native.workers.built:
        if order.base is not None:
            assert native_tree(native, order.base.source.sha) == native_tree(native, order.source.sha)


@pytest.mark.parametrize("first_bad", [1, 5, 6, 12, 17, 18, 23])
def test_the_answer_is_the_same_wherever_it_lies(native: World, first_bad: int) -> None:
    id = begun(native).id
    native.workers.work(native.flow, native.truth(first_bad))
    assert native.flow.bisection(id).answer.shas == (native.shas[first_bad],)


def test_commits_that_change_nothing_of_the_wheel_share_it(native: World) -> None:
    begun(native, good=(native.shas[9],), bad=native.shas[10])
    while native.workers.builds or native.workers.probes:
        native.workers.build(native.flow) if native.workers.builds else native.workers.run(
            native.flow, native.truth(10)
        )
    assert len(native.workers.built) == 1
    assert len({order.wheel for order in native.workers.seen}) == 1


def test_two_bisections_at_once_build_each_native_tree_and_each_wheel_once(native: World) -> None:
    first, second = submit(native).id, submit(native).id
    native.workers.prepare(native.flow)
    native.workers.prepare(native.flow)
    native.workers.work(native.flow, native.truth(14))
    assert {native.flow.bisection(id).state for id in (first, second)} == {BisectionState.FOUND}
    keys = [order.key for order in native.workers.built]
    assert len(keys) == len(set(keys))
    trees = [native_tree(native, order.source.sha) for order in native.workers.built if order.base is None]
    assert len(trees) == len(set(trees))


def two_of_one_tree(world: World) -> tuple[str, Probe, Probe]:
    """A bisection whose two ends share their native code, one of them in work, the other waiting for it."""
    id = begun(world, good=(world.shas[12],), bad=world.shas[17], width=2).id
    bad, good = world.flow.probes(id)
    assert [order.source.sha for order in world.workers.builds] == [bad.sha]
    assert state(world, good.build_key) is BuildState.WAITING
    return id, bad, good


def test_a_wheel_waits_for_its_native_code_and_takes_it(native: World) -> None:
    id, bad, good = two_of_one_tree(native)
    built = native.workers.build(native.flow)
    (overlay,) = native.workers.builds
    assert overlay.source.sha == good.sha
    assert overlay.base is not None
    assert (overlay.base.source.sha, overlay.base.wheel) == (bad.sha, f"wheels/{built.key}/1/p-1.whl")


def test_a_base_that_the_store_has_lost_serves_nobody_any_more(native: World) -> None:
    """Its native code is compiled once more, and not by each wheel that was to stand on it."""
    _, bad, good = two_of_one_tree(native)
    lost = native.workers.build(native.flow)
    begun(native, good=(native.shas[13],), bad=native.shas[16])
    assert len(native.workers.builds) == 2
    for _ in range(2):
        native.workers.build(native.flow, fault=Fault("lost-base", "it is not in the store", ""))
    assert state(native, lost.key) is BuildState.EVICTED
    assert [(order.source.sha, order.attempt, order.base) for order in native.workers.builds] == [(good.sha, 2, None)]
    native.workers.build(native.flow)
    assert [order.base and order.base.source.sha for order in native.workers.builds] == [good.sha]


def test_native_code_that_does_not_compile_is_not_compiled_again_for_this_bisection(native: World) -> None:
    id, bad, good = two_of_one_tree(native)
    native.workers.build(native.flow, failure=UNCOMPILED)
    assert native.workers.builds == []
    reasons = [native.flow.probe(probe.id).reason for probe in (bad, good)]
    assert reasons[0] == "does not build: csrc/a.c:3:1: error: expected ';'"
    assert reasons[1] == (
        "does not build: csrc/a.c:3:1: error: expected ';' "
        f"(not built: its native code is that of {bad.sha[:10]}, which does not compile)"
    )


def test_a_build_that_failed_without_a_compilers_word_says_nothing_about_others(native: World) -> None:
    _, _, good = two_of_one_tree(native)
    of_python = Outcome("build", exit_status=1, first_error="SyntaxError: invalid syntax (pkg/a.py, line 3)")
    native.workers.build(native.flow, failure=of_python)
    assert [(order.source.sha, order.base) for order in native.workers.builds] == [(good.sha, None)]


def test_when_the_builder_of_native_code_dies_again_and_again_another_commit_takes_over(native: World) -> None:
    _, _, good = two_of_one_tree(native)
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("disk-full", "full", ""))
        native.wait_for_retry()
    assert [(order.source.sha, order.base) for order in native.workers.builds] == [(good.sha, None)]


def test_a_native_build_that_others_wait_for_is_not_cancelled_with_its_probe(native: World) -> None:
    first = begun(native, good=(native.shas[0],), bad=native.shas[17]).id
    second = begun(native, good=(native.shas[0],), bad=native.shas[16]).id
    waiting = native.flow.probes(second)[0]
    assert state(native, waiting.build_key) is BuildState.WAITING
    native.flow.cancel(first, "me")
    assert native.workers.cancelled == []
    native.workers.build(native.flow)
    assert native.workers.builds[0].base is not None


def test_a_wheel_that_waits_for_a_lost_native_build_is_found_by_the_sweep(native: World) -> None:
    _, bad, good = two_of_one_tree(native)
    with native.flow.ports.bisections.transaction() as tx:
        lost = tx.build(bad.build_key, lock=True)
        tx.save_build(replace(lost, state=BuildState.CANCELLED))
    native.workers.builds.clear()
    native.workers.carries = False
    native.flow.sweep()
    assert [order.source.sha for order in native.workers.builds] == [good.sha]


@pytest.mark.parametrize(
    ("requires", "version", "compiled"), [("hatchling", "2", 1), ("setuptools", "1", 2)], ids=["version", "requires"]
)
def test_build_settings_are_native_and_the_projects_own_fields_are_not(
    world: World, tmp_path: Path, requires: str, version: str, compiled: int
) -> None:
    path = tmp_path / "settings"
    first = {"csrc/a.c": "", "pyproject.toml": PROJECT.format(version="1", requires="hatchling")}
    changed = {"pyproject.toml": PROJECT.format(version=version, requires=requires), "pkg/a.py": "1"}
    shas = build_repository(path, [NewCommit(files=first), NewCommit(files=changed)])
    made = with_recipe(replace(world, repository=path, shas=shas))
    begun(made)
    made.workers.work(made.flow, made.truth(1))
    assert len([order for order in made.workers.built if order.base is None]) == compiled


@pytest.mark.parametrize("field", ["wheel_paths", "native_paths"])
def test_paths_that_choose_nothing_are_refused(native: World, field: str) -> None:
    wrong = with_recipe(native, **{field: ("/cscr/**",)})
    id = submit(wrong).id
    wrong.flow.prepare(wrong.workers.prepares.pop())
    found = wrong.flow.bisection(id)
    assert (found.state, found.problem.slug, found.problem.field) == (BisectionState.REFUSED, "bad-paths", field)
    assert "/cscr/**" in found.problem.detail


def test_native_code_outside_of_the_wheels_paths_counts_as_its_content(native: World) -> None:
    apart = with_recipe(native, wheel_paths=("/pkg/**",))
    begun(apart, good=(native.shas[11],), bad=native.shas[12])
    apart.workers.work(apart.flow, apart.truth(12))
    assert len(apart.workers.built) == 2


def test_another_image_or_python_makes_other_wheels(native: World) -> None:
    for builder in (BUILDER, replace(BUILDER, python="3.12"), Builder("sha256:1", "3.11", "x86_64")):
        submit(native)
        native.flow.prepare(native.workers.prepares.pop())
        native.workers.survey(native.flow, builder)
        native.workers.work(native.flow, native.truth(14))
    compiled = [order for order in native.workers.built if order.base is None]
    assert len(compiled) % 3 == 0
    assert len({order.key for order in native.workers.built}) == len(native.workers.built)
    assert {order.sandbox.python for order in native.workers.seen} == {"3.11", "3.12"}
    assert {order.sandbox.image for order in native.workers.seen} == {None, "sha256:1"}


def test_a_survey_that_meets_only_faults_ends_the_bisection_and_says_why(native: World) -> None:
    id = submit(native).id
    native.flow.prepare(native.workers.prepares.pop())
    for attempt in range(1, 4):
        order = native.workers.surveys.pop()
        assert order.attempt == attempt
        fault = Fault("image-missing", "there is no image x", "pull it")
        native.flow.surveyed(SurveyReport(id, attempt, "n1", fault=fault))
        native.wait_for_retry()
    found = native.flow.bisection(id)
    assert found.state is BisectionState.FAILED
    assert "there is no image x" in found.problem.detail
    assert found.problem.advice == "pull it"


def test_a_survey_that_is_lost_is_asked_again_and_its_late_answer_is_stale(native: World) -> None:
    id = submit(native).id
    native.flow.prepare(native.workers.prepares.pop())
    native.workers.surveys.clear()
    native.workers.carries = False
    native.flow.sweep()
    native.clock.pass_(31)
    native.flow.sweep()
    assert [order.attempt for order in native.workers.surveys] == [2]
    native.flow.surveyed(SurveyReport(id, 1, "n1", BUILDER))
    assert native.flow.bisection(id).state is BisectionState.PREPARING
    native.workers.survey(native.flow)
    assert native.flow.bisection(id).state is BisectionState.CHECKING_ENDS


def test_idle_builders_work_ahead_at_low_priority_and_are_believed(native: World) -> None:
    node(native, 2, "build")
    id = begun(native).id
    now, ahead = native.workers.builds
    assert (now.ahead, ahead.ahead) == (False, True)
    assert (now.source.sha, ahead.source.sha) == (native.shas[-1], native.shas[0])
    native.workers.build(native.flow)
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    good = native.workers.start(native.flow)
    assert good.source.sha == native.shas[0]
    assert probe_of(native, id, native.shas[0]).build_key == ahead.key


def test_nothing_is_built_ahead_without_a_free_builder(native: World) -> None:
    node(native, 1, "build", "run")
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    assert not any(order.ahead for order in native.workers.built)


def test_no_more_is_built_ahead_than_the_policy_allows(native: World) -> None:
    limited = with_policy(native, ahead=1)
    node(limited, 16, "build")
    begun(limited)
    assert sum(order.ahead for order in limited.workers.builds) == 1
    none = with_policy(native, ahead=0)
    begun(none, good=(native.shas[1],))
    assert sum(order.ahead for order in none.workers.builds) == 1


def test_what_was_begun_ahead_is_hurried_when_a_probe_wants_it(native: World) -> None:
    node(native, 2, "build")
    begun(native)
    now, ahead = native.workers.builds
    assert native.workers.builds[0] is now
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    again = [order for order in native.workers.builds if order.key == ahead.key]
    assert [(order.attempt, order.ahead) for order in again] == [(1, True), (1, False)]


def test_a_wheel_that_is_made_in_no_time_is_made_ahead_only_when_it_is_likely_next() -> None:
    keys = {sha: Keys(sha, "n") for sha in "abc"} | {"x": Keys("x", "m")}
    known = Forecast(natives=frozenset("n"), run_s=60.0, build_s=600.0, overlay_s=2.0, room=9, most=9)
    likely = [("a", 0.5), ("b", 0.25), ("x", 0.1)]
    assert worth_building(likely, keys, known) == ("a", "x")
    assert worth_building(likely, keys, replace(known, overlay_s=70.0)) == ("a", "b", "x")
    assert worth_building(likely, keys, replace(known, coming=frozenset("m"))) == ("a",)
    assert worth_building(likely, keys, replace(known, most=1)) == ("a",)


def test_builds_ahead_that_became_worthless_are_cancelled(native: World) -> None:
    node(native, 8, "build")
    id = begun(native).id
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    ahead = {order.key for order in native.workers.builds if order.ahead}
    native.flow.cancel(id, "me")
    assert ahead
    cancelled = {key for kind, key, _ in native.workers.cancelled if kind == "build"}
    assert ahead <= cancelled
    assert all(state(native, key) is BuildState.CANCELLED for key in ahead)


def test_a_whole_search_with_idle_builders_leaves_none_at_work(native: World) -> None:
    node(native, 4, "build")
    id = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(id).answer.shas == (native.shas[14],)
    with native.flow.ports.bisections.transaction() as tx:
        assert tx.builds_ahead(id) == ()


def test_a_build_failure_is_the_verdict_where_it_is_what_is_looked_for(native: World) -> None:
    recipe = with_recipe(native)
    request = submit(recipe).request
    assert request.failure_in is FailureIn.RUN
    id = begun(recipe, script=None, failure_in="build").id
    truth = native.truth(14)
    while recipe.workers.builds:
        bad = truth(recipe.workers.builds[0].source.sha)
        assert recipe.workers.builds[0].base is None
        recipe.workers.build(recipe.flow, **({"failure": UNCOMPILED} if bad else {}))
    found = recipe.flow.bisection(id)
    assert found.state is BisectionState.FOUND
    assert found.answer.shas == (native.shas[14],)
    assert recipe.workers.probes == []


def test_another_build_failure_is_skipped_where_one_is_named(native: World) -> None:
    id = begun(native, script=None, failure_in="build", failure="undefined symbol").id
    assert native.workers.builds[0].failure == "undefined symbol"
    native.workers.build(native.flow, failure=UNCOMPILED)
    probe = native.flow.probes(id)[0]
    assert (probe.verdict, probe.reason.split(":")[0]) == (Verdict.SKIP, "another failure")


def test_a_fixup_goes_with_the_orders_of_its_range_and_makes_other_wheels(native: World) -> None:
    fixup = Fixup(f"{native.shas[5]}..{native.shas[20]}", patch="--- a/csrc/a.c\n")
    fixed = with_recipe(native, fixups=(fixup,))
    plain = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    id = begun(fixed).id
    fixed.workers.work(fixed.flow, fixed.truth(14))
    patched = {order.source.sha for order in fixed.workers.built if order.source.fixups}
    assert patched
    assert patched <= set(native.shas[6:21])
    both = {probe.sha: probe.build_key for probe in native.flow.probes(plain)}
    for probe in fixed.flow.probes(id):
        if probe.sha in both:
            assert (probe.build_key == both[probe.sha]) == (probe.sha not in native.shas[6:21])


def test_a_fixup_that_does_not_apply_is_a_skip_with_that_reason(native: World) -> None:
    id = begun(native).id
    unfixed = Outcome("fix-up", exit_status=1, first_error="fix-up 1 (patch) does not apply: error: a.c: no such file")
    native.workers.build(native.flow, failure=unfixed)
    probe = native.flow.probes(id)[0]
    assert (probe.verdict, probe.reason) == (Verdict.SKIP, unfixed.first_error)


@pytest.mark.parametrize(
    ("as_of", "wanted"),
    [
        ("bad", "2023-11-14"),
        ("today", None),
        ("2025-09-25", "2025-09-25T23:59:59+00:00"),
    ],
)
def test_dependencies_are_as_of_the_time_that_was_asked_for(native: World, as_of: str, wanted: str | None) -> None:
    dated = with_recipe(native, deps=Deps(as_of, "torch==2.8"))
    begun(dated)
    dated.workers.build(dated.flow)
    order = dated.workers.start(dated.flow)
    assert order.dependencies is not None
    assert order.dependencies.constraints == "torch==2.8"
    assert (order.dependencies.as_of or "").startswith(wanted or "")
    assert (order.dependencies.as_of is None) == (wanted is None)


def test_dependencies_as_of_the_commit_differ_between_commits(native: World) -> None:
    for as_of, times in (("bad", 1), ("commit", 2)):
        dated = with_recipe(native, deps=Deps(as_of))
        before = len(dated.workers.seen)
        begun(dated)
        dated.workers.work(dated.flow, dated.truth(14))
        told = {order.dependencies.as_of for order in dated.workers.seen[before:] if order.dependencies}
        assert (len(told) >= times) and (times > 1 or len(told) == 1)


def test_the_store_is_kept_within_its_budget_but_for_what_live_bisections_need(native: World) -> None:
    first = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(first).state is BisectionState.FOUND
    second = begun(native).id
    native.workers.run(native.flow, native.truth(14))
    tight = with_policy(native, store_bytes=100)
    tight.flow.sweep()
    needed = {probe.build_key for probe in tight.flow.probes(second)}
    keys = {order.key for order in native.workers.built}
    states = {key: state(tight, key) for key in keys}
    assert all(states[key] is BuildState.BUILT for key in needed)
    assert any(found is BuildState.EVICTED for found in states.values())
    tight.workers.work(tight.flow, tight.truth(14))
    assert tight.flow.bisection(second).answer.shas == (native.shas[14],)


def test_an_evicted_wheel_is_gone_from_the_store_and_built_again_when_wanted(native: World, tmp_path: Path) -> None:
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    key, path = native.workers.built[0].key, tmp_path / "store" / f"wheels/{native.workers.built[0].key}/1/p-1.whl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 100)
    empty = with_policy(native, store_bytes=0)
    empty.flow.sweep()
    empty.flow.sweep()
    assert not path.exists()
    assert state(native, key) is BuildState.EVICTED
    built = len(native.workers.built)
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    assert len(native.workers.built) > built
    assert state(native, key) is BuildState.BUILT


def test_the_wheels_used_longest_ago_go_first_and_no_more_than_must() -> None:
    kept = [
        Kept("a", 50, None, False),
        Kept("b", 50, None, True),
        Kept("c", 50, None, False),
        Kept("d", 50, None, False),
    ]
    assert [wheel.key for wheel in evict.surplus(kept, 150)] == ["a"]
    assert [wheel.key for wheel in evict.surplus(kept, 149)] == ["a", "c"]
    assert [wheel.key for wheel in evict.surplus(kept, 10)] == ["a", "c", "d"]
    assert evict.surplus(kept, 200) == ()


def test_a_report_counts_wheels_by_how_they_came_about(native: World) -> None:
    first = begun(native).id
    native.workers.build(native.flow, failure=UNCOMPILED)
    assert native.flow.report(first).wheels == Wheels(failed=1)
    second = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    told = native.flow.report(second).wheels
    used = {probe.build_key for probe in native.flow.probes(second)}
    assert told.built + told.overlay + told.reused == len(used)
    natives = {native_tree(native, probe.sha) for probe in native.flow.probes(second)}
    assert (told.built, told.reused) == (len(natives) - 1, 1), "the good end was asked for by the first already"


def test_the_log_of_a_build_is_that_of_its_last_attempt(native: World) -> None:
    begun(native)
    order = native.workers.build(native.flow, failure=replace(UNCOMPILED), log=Log("logs/x.1.log", 5))
    place = Path(native.flow.ports.artifacts._root) / "logs"  # noqa: SLF001
    place.mkdir(parents=True)
    (place / "x.1.log").write_bytes(b"said\n")
    assert b"".join(native.flow.build_log(order.key).pieces) == b"said\n"
    with pytest.raises(NotFound):
        native.flow.build_log("none")


def test_a_build_tells_how_its_wheel_came_about(native: World) -> None:
    begun(native)
    order = native.workers.build(native.flow)
    with native.flow.ports.bisections.transaction() as tx:
        build = tx.build(order.key)
    assert (build.origin, build.base_key) == (Origin.BUILT, None)


def test_a_probe_that_waits_for_a_build_is_building(native: World) -> None:
    _, bad, good = two_of_one_tree(native)
    assert {native.flow.probe(probe.id).state for probe in (bad, good)} == {ProbeState.BUILDING}


def test_bisections_that_begin_at_once_compile_their_native_code_once(native: World) -> None:
    for number in range(19, 24):
        submit(native, bad=native.shas[number])
        native.flow.prepare(native.workers.prepares.pop())
    reports = [SurveyReport(order.bisection, order.attempt, "n1", BUILDER) for order in native.workers.surveys]
    at_once(*[lambda report=report: native.flow.surveyed(report) for report in reports])
    assert len(native.workers.builds) == 1
    native.workers.surveys.clear()
    native.workers.work(native.flow, native.truth(14))
    compiled = [native_tree(native, order.source.sha) for order in native.workers.built if order.base is None]
    assert len(compiled) == len(set(compiled))


def test_a_build_ahead_that_met_only_faults_is_left_until_a_probe_wants_it(native: World) -> None:
    node(native, 2, "build")
    begun(native)
    bad, ahead = native.workers.builds
    native.workers.builds = [ahead]
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("disk-full", "full", ""))
        native.wait_for_retry()
        node(native, 2, "build")
    assert state(native, ahead.key) is BuildState.FAULTED
    assert ahead.key not in [order.key for order in native.workers.builds]
    native.workers.builds = [bad]
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    assert ahead.key in [order.key for order in native.workers.builds]


def test_native_code_that_was_hurried_is_stopped_when_nobody_waits_for_it_any_more(native: World) -> None:
    node(native, 2, "build")
    first = begun(native, bad=native.shas[20]).id
    _, ahead = native.workers.builds
    second = begun(native, bad=native.shas[3]).id
    assert state(native, native.flow.probes(second)[0].build_key) is BuildState.WAITING
    for id in (second, first):
        native.flow.cancel(id, "me")
    assert ("build", ahead.key, ahead.attempt) in native.workers.cancelled


def test_a_probe_whose_wheel_shares_a_failure_found_by_the_sweep_goes_on(native: World) -> None:
    """On PostgreSQL the end of a native build may come before the one that waits for it is committed."""
    _, bad, good = two_of_one_tree(native)
    with native.flow.ports.bisections.transaction() as tx:
        tx.save_build(replace(tx.build(bad.build_key, lock=True), state=BuildState.FAILED, failure=UNCOMPILED))
    native.workers.builds.clear()
    native.workers.carries = False
    native.flow.sweep()
    assert native.flow.probe(good.id).verdict is Verdict.SKIP


def test_a_second_probe_that_misses_a_wheel_goes_on_however_the_rebuild_ended(native: World) -> None:
    begun(native)
    native.workers.build(native.flow)
    begun(native, good=(native.shas[2],))
    first, second = native.workers.start(native.flow), native.workers.start(native.flow)
    assert first.wheel == second.wheel
    lost = Fault("missing-wheel", "gone", "")
    native.flow.probed(ProbeReport(first.probe, first.attempt, "n1", fault=lost))
    native.workers.build(native.flow, failure=Outcome("build", exit_status=1))
    native.flow.probed(ProbeReport(second.probe, second.attempt, "n1", fault=lost))
    assert native.flow.probe(second.probe).build_key in [order.key for order in native.workers.builds]


def test_a_probe_that_missed_a_wheel_takes_the_one_that_was_made_since(native: World) -> None:
    begun(native)
    native.workers.build(native.flow)
    begun(native, good=(native.shas[2],))
    first, second = native.workers.start(native.flow), native.workers.start(native.flow)
    lost = Fault("missing-wheel", "gone", "")
    native.flow.probed(ProbeReport(first.probe, first.attempt, "n1", fault=lost))
    native.workers.build(native.flow)
    native.flow.probed(ProbeReport(second.probe, second.attempt, "n1", fault=lost))
    assert native.workers.builds == []
    native.clock.pass_(6)
    native.flow.sweep()
    assert {order.wheel.split("/")[2] for order in native.workers.probes} == {"2"}


class Stuck:
    """A store that lets nothing be removed."""

    def read(self, path: str) -> Iterator[bytes]:
        return iter(())

    def remove(self, path: str) -> None:
        raise StoreBusy("access denied")


def test_a_store_that_lets_nothing_be_removed_holds_no_order_up(native: World) -> None:
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    ports = replace(native.flow.ports, artifacts=Stuck())
    stuck = with_policy(replace(native, flow=replace(native.flow, ports=ports)), store_bytes=0)
    stuck.flow.sweep()
    begun(stuck, good=(native.shas[2],))
    stuck.workers.build(stuck.flow, fault=Fault("disk-full", "full", ""))
    stuck.wait_for_retry()
    assert [order.attempt for order in stuck.workers.builds] == [3]


def test_a_repository_that_is_gone_stops_its_own_bisection_alone(native: World, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    shas = build_repository(gone, [commit(number) for number in range(24)])
    fixup = Fixup(f"{shas[5]}..{shas[20]}", patch="--- a/csrc/a.c\n")
    begun(with_recipe(replace(native, repository=gone, shas=shas), fixups=(fixup,)))
    begun(native)
    native.workers.down = True
    for order in native.workers.builds:
        wheel = WheelFacts("p-1.whl", f"wheels/{order.key}/1/p-1.whl", 100, "0" * 64)
        native.flow.built(BuildReport(order.key, order.attempt, "n1", 0.5, wheel=wheel, origin=Origin.BUILT))
    native.workers.down = False
    shutil.rmtree(native.flow.ports.history.mirror(str(gone)))
    shutil.rmtree(gone)
    fresh = GitHistory(tmp_path / "mirrors", allow_file=True)
    replace(native.flow, ports=replace(native.flow.ports, history=fresh)).sweep()
    assert [order.source.repo for order in native.workers.probes] == [str(native.repository)]


def test_a_base_that_is_used_is_kept_longer(native: World) -> None:
    begun(native, good=(native.shas[12],), bad=native.shas[17])
    native.workers.work(native.flow, native.truth(14))
    with native.flow.ports.bisections.transaction() as tx:
        base = next(build for build in tx.builds_in([BuildState.BUILT]) if build.base_key is None)
    native.clock.pass_(3600)
    begun(native, good=(native.shas[13],), bad=native.shas[16])
    native.workers.work(native.flow, native.truth(14))
    with native.flow.ports.bisections.transaction() as tx:
        assert tx.build(base.key).used_at > base.used_at


def test_the_wheels_of_attempts_that_do_not_count_are_removed(native: World, tmp_path: Path) -> None:
    begun(native)
    (order,) = native.workers.builds
    stale = WheelFacts("p-1.whl", f"wheels/{order.key}/0/p-1.whl", 100, "0" * 64)
    path = tmp_path / "store" / stale.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    native.flow.built(BuildReport(order.key, 0, "n2", 0.5, wheel=stale, origin=Origin.BUILT))
    assert not path.exists()
    assert state(native, order.key) is BuildState.QUEUED


def test_native_code_that_takes_too_long_again_and_again_is_given_up_for_all_its_commits(native: World) -> None:
    _, bad, good = two_of_one_tree(native)
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("build-timeout", "the build took longer than 1 s", ""))
        native.wait_for_retry()
    assert native.workers.builds == []
    assert {native.flow.probe(probe.id).state for probe in (bad, good)} == {ProbeState.FAULTED}


def test_a_node_that_is_not_fit_for_it_does_not_use_up_the_attempts(native: World) -> None:
    id = begun(native).id
    native.workers.build(native.flow)
    for _ in range(9):
        native.workers.fault(native.flow, "other-python")
        native.wait_for_retry()
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(id).answer.shas == (native.shas[14],)


def test_no_bisection_waits_for_nodes_that_are_not_fit_for_ever(native: World) -> None:
    id = begun(native).id
    native.workers.build(native.flow)
    for _ in range(30):
        native.workers.fault(native.flow, "other-python")
        native.wait_for_retry()
    assert native.flow.probes(id)[0].state is ProbeState.FAULTED


def test_old_faults_of_a_build_do_not_count_for_the_next_who_asks(native: World) -> None:
    begun(native)
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("registry", "away", ""))
        native.wait_for_retry()
    native.workers.builds.clear()
    begun(native)
    native.workers.build(native.flow, fault=Fault("lost", "gone", ""))
    assert [order.attempt for order in native.workers.builds] == [5]
