"""Builds as a bisection asks for them: each native tree once, everything else from its compiled files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.application.report import Wheels
from service.domain.bisection import FailureIn, Origin
from service.domain.errors import NotFound
from service.domain.evidence import Fault, Log, Outcome, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.results import SurveyReport
from tests.application.conftest import World
from tests.application.native import (
    PROJECT,
    UNCOMPILED,
    begun,
    native_tree,
    state,
    submit,
    two_of_one_tree,
    with_recipe,
)
from tests.application.test_races import at_once
from tests.fakes.workers import BUILDER
from tests.repositories import NewCommit, build_repository


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


def test_native_code_outside_of_the_wheels_paths_counts_as_its_content(native: World) -> None:
    apart = with_recipe(native, wheel_paths=("/pkg/**",))
    begun(apart, good=(native.shas[11],), bad=native.shas[12])
    apart.workers.work(apart.flow, apart.truth(12))
    assert len(apart.workers.built) == 2


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


def test_a_probe_whose_wheel_shares_a_failure_found_by_the_sweep_goes_on(native: World) -> None:
    """On PostgreSQL the end of a native build may come before the one that waits for it is committed."""
    _, bad, good = two_of_one_tree(native)
    with native.flow.ports.bisections.transaction() as tx:
        tx.save_build(replace(tx.build(bad.build_key, lock=True), state=BuildState.FAILED, failure=UNCOMPILED))
    native.workers.builds.clear()
    native.workers.carries = False
    native.flow.sweep()
    assert native.flow.probe(good.id).verdict is Verdict.SKIP


def test_native_code_that_takes_too_long_again_and_again_is_given_up_for_all_its_commits(native: World) -> None:
    _, bad, good = two_of_one_tree(native)
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("build-timeout", "the build took longer than 1 s", ""))
        native.wait_for_retry()
    assert native.workers.builds == []
    assert {native.flow.probe(probe.id).state for probe in (bad, good)} == {ProbeState.FAULTED}


def test_old_faults_of_a_build_do_not_count_for_the_next_who_asks(native: World) -> None:
    begun(native)
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("registry", "away", ""))
        native.wait_for_retry()
    native.workers.builds.clear()
    begun(native)
    native.workers.build(native.flow, fault=Fault("lost", "gone", ""))
    assert [order.attempt for order in native.workers.builds] == [5]
