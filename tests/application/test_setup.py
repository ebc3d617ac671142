"""What all builds and runs of a bisection share: the builder, fix-ups, the date of its dependencies."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from service.adapters.git_history import GitHistory
from service.domain.bisection import Builder, Origin
from service.domain.evidence import Fault, Outcome, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.recipe import Deps, Fixup
from service.domain.results import BuildReport, SurveyReport, WheelFacts
from tests.application.conftest import World
from tests.application.native import begun, commit, submit, with_recipe
from tests.fakes.workers import BUILDER
from tests.repositories import build_repository


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


@pytest.mark.parametrize("field", ["wheel_paths", "native_paths"])
def test_paths_that_choose_nothing_are_refused(native: World, field: str) -> None:
    wrong = with_recipe(native, **{field: ("/cscr/**",)})
    id = submit(wrong).id
    wrong.flow.prepare(wrong.workers.prepares.pop())
    found = wrong.flow.bisection(id)
    assert (found.state, found.problem.slug, found.problem.field) == (BisectionState.REFUSED, "bad-paths", field)
    assert "/cscr/**" in found.problem.detail


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
