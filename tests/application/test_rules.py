"""A verdict is about this failure, on this wheel, and never the node's fault: each rule, and what goes first."""

from dataclasses import replace

import pytest

from service.application.cases import Case, Gives, Ruling, Wanted
from service.application.judge import RULES, rule
from service.application.judge_builds import judge_build_failure
from service.application.meanings import MEANINGS, Means
from service.domain.bisection import FailureIn, OtherFailures, Reproduction, Request, Serve
from service.domain.evidence import Fault, Frame, Outcome, Replaced, Sign, Signature, Told, Verdict
from service.domain.recipe import Deps, Recipe, SandboxKind

SCRIPT = Request("repo", ("v1",), "main", Reproduction(script="true"), Recipe("python"), SandboxKind.PROCESS)
SERVER = replace(SCRIPT, reproduction=Reproduction(serve=Serve("serve", ready_http="/health"), check="bench"))
GRAPHS = Signature(
    "python exception",
    "AssertionError",
    "graph capture supports decode batches only",
    (Frame("tinyserve/graphs.py", "capture"), Frame("tinyserve/engine.py", "start")),
    said="AssertionError: graph capture supports decode batches only",
)
SHAPES = Signature(
    "python exception",
    "ValueError",
    "cannot broadcast shapes of the cache blocks",
    (Frame("tinyserve/cache.py", "allocate"),),
    said="ValueError: cannot broadcast shapes of the cache blocks",
)
WANTED = Wanted(GRAPHS, "start")


def died(signature: Signature | None = GRAPHS, **change: object) -> Outcome:
    return replace(Outcome("start", exit_status=1, ready=False, signature=signature), **change)


def ruled(outcome: Outcome, request: Request = SERVER, wanted: Wanted | None = WANTED, **case: object) -> Ruling:
    return rule(Case(outcome, request, wanted, **case))  # type: ignore[arg-type]


def test_the_failure_of_the_bad_end_is_bad_and_is_told_in_the_log_s_own_words() -> None:
    found = ruled(died())
    assert found.gives is Gives.BAD
    assert "graph capture supports decode batches only" in found.reason


def test_another_failure_is_a_skip_that_names_both() -> None:
    found = ruled(died(SHAPES))
    assert found.gives is Gives.SKIP
    assert "cannot broadcast shapes" in found.reason and "graph capture" in found.reason


def test_a_failure_that_says_nothing_is_another_one_than_one_that_does() -> None:
    assert ruled(died(None)).gives is Gives.SKIP


def test_another_failure_counts_where_the_user_says_so() -> None:
    assert ruled(died(SHAPES), replace(SERVER, other_failures=OtherFailures.BAD)).gives is Gives.BAD


def test_without_a_signature_at_the_bad_end_the_exit_status_decides() -> None:
    assert ruled(died(None), wanted=Wanted(None, "start")).gives is Gives.BAD
    # One that tells what failed is another failure than one that told nothing.
    assert ruled(died(SHAPES), wanted=Wanted(None, "start")).gives is Gives.SKIP


def test_a_failure_in_another_phase_is_another_one() -> None:
    found = ruled(died(None), wanted=Wanted(None, "check"))
    assert (found.gives, "comes in check" in found.reason) == (Gives.SKIP, True)
    later = Outcome("check", exit_status=1, ready=True)
    assert ruled(later, wanted=Wanted(None, "start")).gives is Gives.SKIP
    assert ruled(later, wanted=Wanted(None, "check")).gives is Gives.BAD


def test_what_the_check_told_at_the_bad_end_no_crash_is() -> None:
    told = Wanted(None, "check", told=True)
    assert ruled(Outcome("check", exit_status=1, ready=True, signature=SHAPES), wanted=told).gives is Gives.SKIP
    assert ruled(Outcome("check", exit_status=1, ready=True), wanted=told).gives is Gives.SKIP
    said = Outcome("check", exit_status=0, ready=True, told=Told(Verdict.BAD, "wrong answer"))
    assert ruled(said, wanted=told).gives is Gives.BAD


def test_a_time_out_is_the_failure_only_where_the_bad_end_ran_out_of_time_too() -> None:
    hangs = replace(SERVER, hang_is_bad=True)
    late = Outcome("check", ready=True, timed_out=True)
    assert ruled(late, hangs, wanted=None).gives is Gives.BAD
    assert ruled(late, hangs, wanted=Wanted(None, "check", timed_out=True)).gives is Gives.BAD
    assert ruled(late, hangs, wanted=WANTED).gives is Gives.SKIP
    assert ruled(late, hangs, wanted=Wanted(None, "start", timed_out=True)).gives is Gives.SKIP
    assert ruled(
        Outcome("check", exit_status=1, ready=True), hangs, wanted=Wanted(None, "check", timed_out=True)
    ).gives is (Gives.SKIP)
    named = replace(hangs, reproduction=replace(hangs.reproduction, failure="deadlock"))
    assert ruled(late, named, wanted=None).gives is Gives.SKIP


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cannot import name 'A' from 'tinyserve.models'", "cannot import name 'B' from 'tinyserve.models'"),
        ("'Config' object has no attribute 'rope_theta'", "'Config' object has no attribute 'head_dim'"),
        ("load() got an unexpected keyword argument 'rope'", "load() got an unexpected keyword argument 'dim'"),
        ("No module named 'tinyserve.graphs'", "No module named 'tinyserve.cache'"),
        ("'layers.weight_scale'", "'layers.qweight'"),
    ],
)
def test_messages_that_name_different_things_are_of_different_failures(one: str, other: str) -> None:
    first, second = replace(GRAPHS, message=one, said=one), replace(GRAPHS, message=other, said=other)
    assert ruled(died(first), wanted=Wanted(first, "start")).gives is Gives.BAD
    assert ruled(died(second), wanted=Wanted(first, "start")).gives is Gives.SKIP


def test_the_user_s_text_decides_where_it_is_given() -> None:
    asked = replace(SERVER, reproduction=replace(SERVER.reproduction, failure="graph capture"))
    assert ruled(died(failure_seen="graph capture …"), asked).gives is Gives.BAD
    assert ruled(died(SHAPES, failure_seen="graph capture …"), asked).gives is Gives.BAD
    assert ruled(died(), asked).gives is Gives.SKIP


def test_a_bad_counts_only_where_the_control_passes() -> None:
    request = replace(SERVER, control=Reproduction(serve=Serve("serve --two"), check="bench"))
    passes, fails = Outcome("check", exit_status=0, ready=True), died(SHAPES)
    assert ruled(died(control=passes), request).gives is Gives.BAD
    also = ruled(died(control=fails), request)
    assert (also.gives, "also fails with the control" in also.reason) == (Gives.SKIP, True)
    assert ruled(died(control=None), request).gives is Gives.SKIP
    assert ruled(Outcome("check", exit_status=0, ready=True), request).gives is Gives.GOOD


def test_what_a_node_does_to_the_control_is_the_node_s_fault() -> None:
    request = replace(SERVER, control=Reproduction(serve=Serve("serve --two")))
    full = died(None, signs=(Sign("disk-full", "No space left on device"),))
    assert ruled(died(control=full), request).gives is Gives.FAULT


def test_the_check_may_say_it_itself() -> None:
    passed = Outcome("check", exit_status=0, ready=True)
    assert ruled(replace(passed, told=Told(Verdict.BAD, "wrong answer"))).gives is Gives.BAD
    assert ruled(replace(passed, told=Told(Verdict.SKIP, "no such model"))).gives is Gives.SKIP
    assert ruled(replace(passed, told=Told(Verdict.GOOD))).gives is Gives.GOOD
    assert "wrong answer" in ruled(replace(passed, told=Told(Verdict.BAD, "wrong answer"))).reason
    died_later = replace(passed, exit_status=1, told=Told(Verdict.GOOD))
    assert ruled(died_later).gives is Gives.SKIP


def test_a_script_that_asks_to_skip_is_believed_whatever_it_printed() -> None:
    assert ruled(Outcome("script", exit_status=125, signature=GRAPHS), SCRIPT).gives is Gives.SKIP


def test_a_replaced_package_is_refused_with_the_line_that_did_it() -> None:
    replaced = Replaced("tinyserve 0.1", "tinyserve 0.2", "pip install tinyserve==0.2")
    found = ruled(Outcome("check", exit_status=0, ready=True, replaced=replaced))
    assert (found.gives, found.kind) == (Gives.REFUSED, "replaced-package")
    assert "pip install tinyserve==0.2" in found.reason


EXPECTED = {
    Means.ELSEWHERE: Gives.FAULT,
    Means.LATER: Gives.LATER,
    Means.OUT: Gives.OUT,
    Means.HOPELESS: Gives.REFUSED,
    Means.SKIP: Gives.SKIP,
    Means.OWN_DAY: Gives.OWN_DAY,
}


@pytest.mark.parametrize("name", MEANINGS)
def test_each_sign_has_its_meaning(name: str) -> None:
    meaning = MEANINGS[name]
    outcome = died(SHAPES, signs=(Sign(name, "the line", root=True),), dependencies={"torch": "2.8.0"})
    outcome = replace(outcome, environment={"gpus": "2: H100"})
    held = replace(outcome, environment={"gpu_held_by": "GPU 2 is held by pid 4711 (train)"})
    found = ruled(held if meaning.means is Means.HELD else outcome)
    assert found.gives is EXPECTED.get(meaning.means, Gives.FAULT)
    assert "the line" in found.reason
    if found.gives in (Gives.FAULT, Gives.LATER, Gives.OUT, Gives.REFUSED):
        assert (found.kind, found.advice) == (name, meaning.advice)


@pytest.mark.parametrize("name", [name for name, meaning in MEANINGS.items() if not meaning.anywhere])
def test_a_sign_beside_another_root_failure_is_no_excuse(name: str) -> None:
    """Such as a name that cannot be resolved, of which every server without a network tells before it dies."""
    signs = (Sign(name, "the line", root=False),)
    assert ruled(died(GRAPHS, signs=signs, environment={"gpu_held_by": "x"})).gives is Gives.BAD
    assert "another failure" in ruled(died(SHAPES, signs=signs, environment={"gpu_held_by": "x"})).reason


@pytest.mark.parametrize("name", MEANINGS)
def test_a_run_that_passes_is_good_whatever_its_log_holds(name: str) -> None:
    passed = Outcome("check", exit_status=0, ready=True, signs=(Sign(name, "the line", root=True),))
    assert ruled(passed).gives is Gives.GOOD


def test_a_node_s_own_failure_is_never_the_failure_looked_for() -> None:
    full = replace(GRAPHS, type="OSError", message="No space left on device")
    signs = (Sign("disk-full", "No space left on device", root=True),)
    assert ruled(died(full, signs=signs), wanted=Wanted(full, "start")).gives is Gives.FAULT


@pytest.mark.parametrize("name", [name for name, meaning in MEANINGS.items() if meaning.commits])
def test_what_a_commit_may_cause_too_is_the_failure_looked_for_once_the_bad_end_has_it(name: str) -> None:
    assert ruled(died(signs=(Sign(name, "the line", root=True),))).gives is Gives.BAD


@pytest.mark.parametrize("name", [n for n, m in MEANINGS.items() if m.commits and m.means is not Means.OWN_DAY])
def test_what_a_commit_may_cause_too_is_judged_when_it_happens_wherever_it_is_tried(name: str) -> None:
    outcome = died(signs=(Sign(name, "the line", root=True),), environment={"gpus": "0: H100"})
    once, twice = (Fault(name, "x"),), (Fault(name, "x"), Fault(name, "x"))
    assert ruled(outcome, wanted=None, faults=once).gives in (Gives.FAULT, Gives.LATER, Gives.OUT)
    assert ruled(outcome, wanted=None, faults=twice).gives is Gives.BAD
    # All nodes of a class may be unfit for a commit, which then tells nothing.
    assert ruled(outcome, wanted=Wanted(None, "start"), faults=twice).gives is Gives.SKIP


def test_a_gpu_that_was_empty_makes_a_want_of_memory_the_commit_s() -> None:
    outcome = died(SHAPES, signs=(Sign("gpu-memory-wanted", "Free memory is less", root=True),))
    assert ruled(outcome, wanted=Wanted(SHAPES, "start")).gives is Gives.BAD
    held = replace(outcome, environment={"gpu_held_by": "GPU 2 is held by pid 4711 (train)"})
    found = ruled(held, wanted=Wanted(SHAPES, "start"))
    assert (found.gives, "pid 4711" in found.reason) == (Gives.FAULT, True)


def test_dependencies_that_do_not_fit_are_tried_once_more_as_of_the_commit_and_then_named() -> None:
    signs = (Sign("drift", "undefined symbol: _ZN5torch3jit", root=True),)
    outcome = died(SHAPES, signs=signs, dependencies={"torch": "2.8.0"})
    assert ruled(outcome).gives is Gives.OWN_DAY
    again = ruled(outcome, own_day=True)
    assert (again.gives, "undefined symbol" in again.reason) == (Gives.SKIP, True)
    assert ruled(outcome, wanted=None, own_day=True).gives is Gives.BAD
    dated = replace(SERVER, recipe=replace(SERVER.recipe, deps=Deps("commit")))
    assert ruled(outcome, dated).gives is Gives.SKIP


def test_a_broken_gpu_goes_before_everything_else_that_a_log_shows() -> None:
    signs = (Sign("download", "503", root=True), Sign("gpu-broken", "Xid 79"))
    assert ruled(died(SHAPES, signs=signs, environment={"gpus": "0: H100"})).kind == "gpu-broken"


def test_a_broken_gpu_goes_before_what_the_run_says_of_itself() -> None:
    signs, cards = (Sign("gpu-broken", "Xid 79"),), {"gpus": "0: H100"}
    told = Outcome("check", exit_status=0, ready=True, told=Told(Verdict.BAD, "no answer"), signs=signs)
    assert ruled(replace(told, environment=cards)).gives is Gives.OUT
    assert ruled(Outcome("script", exit_status=125, signs=signs, environment=cards), SCRIPT).gives is Gives.OUT


def test_a_sign_that_passing_runs_show_too_says_nothing() -> None:
    """Such as the one line of a usage report that a run without a network cannot send."""
    outcome = died(None, signs=(Sign("dns", "failed to report usage: name resolution"),))
    assert ruled(outcome, wanted=None).gives is Gives.FAULT
    assert ruled(outcome, wanted=None, harmless=frozenset({"dns"})).gives is Gives.BAD


def test_a_sign_beside_the_user_s_own_text_is_no_excuse() -> None:
    asked = replace(SERVER, reproduction=replace(SERVER.reproduction, failure="wrong answer"))
    outcome = died(None, signs=(Sign("dns", "name resolution"),), failure_seen="wrong answer: 3")
    assert ruled(outcome, asked, wanted=None).gives is Gives.BAD


def test_what_the_control_does_not_miss_on_that_node_is_not_missing_there() -> None:
    request = replace(SERVER, control=Reproduction(serve=Serve("serve --two"), check="bench"))
    signs = (Sign("gpu-missing", "No CUDA GPUs are available", root=True),)
    passes = Outcome("check", exit_status=0, ready=True)
    assert ruled(died(SHAPES, signs=signs), request, wanted=None).gives is Gives.FAULT
    assert ruled(died(SHAPES, signs=signs, control=passes), request, wanted=None).gives is Gives.BAD


def test_a_sign_that_nobody_knows_is_left_aside() -> None:
    assert ruled(died(signs=(Sign("of-a-newer-worker", "x", root=True),))).gives is Gives.BAD


def test_another_compiler_error_is_another_failure_where_the_build_is_looked_at() -> None:
    request = replace(SCRIPT, failure_in=FailureIn.BUILD, reproduction=Reproduction())
    wanted = Wanted(replace(GRAPHS, kind="compiler error"), "build")
    build = Outcome("build", exit_status=1, first_error="error: x", code_refused=True)
    same, other = replace(build, signature=wanted.signature), replace(build, signature=SHAPES)
    assert judge_build_failure(same, request, wanted=wanted).verdict is Verdict.BAD
    assert judge_build_failure(other, request, wanted=wanted).verdict is Verdict.SKIP
    assert judge_build_failure(other, request).verdict is Verdict.BAD
    silent = replace(build, signature=None, first_error="cmake: not found")
    assert judge_build_failure(silent, request, wanted=wanted).verdict is Verdict.SKIP
    by_line = Wanted(None, "build", first_error="error: x")
    assert judge_build_failure(build, request, wanted=by_line).verdict is Verdict.BAD
    assert judge_build_failure(silent, request, wanted=by_line).verdict is Verdict.SKIP


def test_the_last_rule_has_something_to_say_of_everything() -> None:
    assert rule(Case(Outcome("?"), SCRIPT)).gives is Gives.SKIP
    assert len({each.name for each in RULES}) == len(RULES)
