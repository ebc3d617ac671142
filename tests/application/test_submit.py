"""What a user may write, and what is said when it cannot be used."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.recipes import load
from service.application.ports import Policy
from service.application.submit import ServeForm, Submission, complete
from service.domain.bisection import FailureIn, Reproduction
from service.domain.duration import seconds, spoken
from service.domain.errors import BadRequest, UserError
from service.domain.recipe import BRIDGE, NO_NETWORK, Deps, Fixup, Recipe, SandboxKind

PLAIN = Submission(good=("v1",), bad="main", repo="https://example.org/p.git", script="exit 0")
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)


def done(submission: Submission, policy: Policy = POLICY):
    return complete(submission, load(), policy)


def refused(submission: Submission, policy: Policy = POLICY) -> UserError:
    with pytest.raises(UserError) as caught:
        done(submission, policy)
    assert caught.value.advice
    return caught.value


def test_defaults_are_a_wheel_by_uv_no_network_one_probe_at_a_time() -> None:
    request = done(PLAIN)
    assert "uv build" in (request.recipe.build_command or "")
    assert (request.recipe.network, request.width, request.timeout_s) == (NO_NETWORK, 1, 3600.0)


def test_the_request_goes_before_the_recipe() -> None:
    request = done(replace(PLAIN, build="make wheel", network="bridge", env={"A": "{sha}"}))
    assert (request.recipe.build_command, request.recipe.network) == ("make wheel", BRIDGE)
    assert request.recipe.env == {"A": "{sha}"}


NATIVE = Recipe(
    "native",
    build_command="make wheel",
    package="vllm",
    wheel_paths=("vllm/**",),
    native_paths=("csrc/**",),
    overlay_command="make overlay",
    wheel_indexes=("https://wheels.example.org/{sha}",),
    deps=Deps("commit", "numpy<2"),
    fixups=(Fixup("a..b", cherry_pick="c"), Fixup("b..c", cherry_pick="d")),
)


def native(**change: object) -> Recipe:
    request = complete(replace(PLAIN, project="native", **change), {"native": NATIVE}, POLICY)  # type: ignore[arg-type]
    return request.recipe


def test_what_the_request_does_not_have_is_the_recipe_s() -> None:
    assert native() == NATIVE


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ({"package": "sglang"}, "package", "sglang"),
        ({"wheel_paths": ("*",)}, "wheel_paths", ("*",)),
        ({"native_paths": ("*.cu", "!x/**")}, "native_paths", ("*.cu", "!x/**")),
        ({"wheel_paths": ()}, "wheel_paths", ()),
        ({"overlay": "make quickly"}, "overlay_command", "make quickly"),
        ({"as_of": "2025-09-25"}, "deps", Deps("2025-09-25", "numpy<2")),
        ({"constraints": "torch==2.8"}, "deps", Deps("commit", "torch==2.8")),
    ],
)
def test_each_key_goes_before_the_recipe_s_alone(change: dict, key: str, value: object) -> None:
    assert native(**change) == replace(NATIVE, **{key: value})


def test_the_request_s_fix_ups_come_behind_the_recipe_s() -> None:
    own = Fixup("v1..v2", patch="--- a/x\n+++ b/x\n")
    assert native(fixups=(own,)).fixups == (*NATIVE.fixups, own)


def test_a_wrong_fix_up_is_told_by_its_place_in_the_request() -> None:
    with pytest.raises(BadRequest, match="'x' is no range") as caught:
        native(fixups=(Fixup("v1..v2", cherry_pick="a"), Fixup("x", cherry_pick="a")))
    assert caught.value.field == "fixups.1.range"


def test_native_paths_need_no_recipe() -> None:
    recipe = done(replace(PLAIN, native_paths=("csrc/**",))).recipe
    assert (recipe.name, recipe.native_paths) == ("python", ("csrc/**",))


def test_a_failing_build_needs_nothing_to_run() -> None:
    request = done(replace(PLAIN, script=None, failure_in="build", failure="error: x"))
    assert request.failure_in is FailureIn.BUILD
    assert request.reproduction == Reproduction(failure="error: x")
    assert done(PLAIN).failure_in is FailureIn.RUN


@pytest.mark.parametrize("change", [{"script": "x"}, {"serve": ServeForm("x")}, {"check": "x"}])
def test_with_a_failing_build_nothing_is_run(change: dict) -> None:
    error = refused(replace(PLAIN, **{"script": None, "failure_in": "build", **change}))
    assert error.field == next(iter(change))
    assert "the build itself is the reproduction" in error.detail


def test_a_build_can_fail_only_where_something_is_built() -> None:
    error = refused(replace(PLAIN, script=None, failure_in="build", project="source"))
    assert (error.field, error.value) == ("failure_in", "build")


def test_the_source_recipe_builds_nothing() -> None:
    assert done(replace(PLAIN, project="source")).recipe.build_command is None


def test_a_server_without_a_sign_of_readiness_is_asked_for_its_health() -> None:
    serve = done(replace(PLAIN, script=None, serve=ServeForm("serve it", within="90s"))).reproduction.serve
    assert serve is not None
    assert (serve.ready_http, serve.ready_log, serve.within_s) == ("/health", None, 90.0)
    by_log = done(replace(PLAIN, script=None, serve=ServeForm("serve it", ready_log="listening"))).reproduction.serve
    assert by_log is not None
    assert (by_log.ready_http, by_log.ready_log) == (None, "listening")


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"good": ()}, "good", "missing"),
        ({"good": ("",)}, "good", "empty"),
        ({"bad": " "}, "bad", "empty"),
        ({"repo": None}, "repo", "missing"),
        ({"project": "nosuch"}, "project", "nosuch"),
        ({"script": ""}, "script", "empty"),
        ({"script": "\n \n"}, "script", "empty"),
        ({"script": None}, "script", "exactly one"),
        ({"serve": ServeForm("x")}, "script", "exactly one"),
        ({"check": "true"}, "check", "beside a server"),
        ({"script": "echo \0"}, "script", "NUL"),
        ({"script": "#" * (256 * 1024 + 1)}, "script", "262145 bytes"),
        ({"script": "é" * (128 * 1024) + "x"}, "script", "262145 bytes"),
        ({"bad": "ma\0in"}, "bad", "NUL"),
        ({"bad": "\ud800"}, "bad", "Unicode"),
        ({"failure": "one\ntwo"}, "failure", "several lines"),
        ({"width": 0}, "width", "0"),
        ({"width": 65}, "width", "65"),
        ({"timeout": "soon"}, "timeout", "soon"),
        ({"timeout": -1}, "timeout", "-1"),
        ({"hang": "maybe"}, "hang", "maybe"),
        ({"sandbox": "chroot"}, "sandbox", "chroot"),
        ({"sandbox": "docker"}, "image", "image"),
        ({"network": "wan"}, "network", "wan"),
        ({"env": {"A B": "1"}}, "env", "A B"),
        ({"env": {"": "1"}}, "env", "''"),
        ({"script": None, "serve": ServeForm("s", ready_http="health")}, "serve.ready.http", "health"),
        ({"script": None, "serve": ServeForm("s", within="x")}, "serve.ready.within", "x"),
        ({"script": None, "serve": ServeForm("")}, "serve.command", "empty"),
        ({"failure_in": "install"}, "failure_in", "install"),
        ({"package": "../x"}, "package", "no name of a package"),
        ({"package": ""}, "package", "empty"),
        ({"native_paths": ("a", "")}, "native_paths.1", "empty"),
        ({"native_paths": ("a", "\ud800")}, "native_paths.1", "Unicode"),
        ({"native_paths": ("a", "/usr/include/**")}, "native_paths.1", "leads out"),
        ({"native_paths": ("!a",)}, "native_paths.0", "takes files out"),
        ({"wheel_paths": ("a",) * 201}, "wheel_paths", "201 patterns"),
        ({"native_paths": ("a",), "project": "source"}, "native_paths", "nothing is built"),
        ({"overlay": "make"}, "overlay", "overlay needs native_paths"),
        ({"as_of": "2025-02-30"}, "deps.as_of", "2025-02-30"),
        ({"as_of": ""}, "deps.as_of", "empty"),
        ({"constraints": "-r x"}, "deps.constraints", "-r x"),
        ({"constraints": "x" * (256 * 1024 + 1)}, "deps.constraints", "262145 bytes"),
        ({"constraints": "x\n" * 5001}, "deps.constraints", "5001 lines"),
        ({"fixups": (Fixup("a..b"),)}, "fixups.0", "exactly one"),
        ({"fixups": (Fixup("a..b", cherry_pick="c", patch="--- a"),)}, "fixups.0", "exactly one"),
        ({"fixups": (Fixup("", cherry_pick="c"),)}, "fixups.0.range", "empty"),
        ({"fixups": (Fixup("a..b", cherry_pick="c d"),)}, "fixups.0.cherry_pick", "names no commit"),
        ({"fixups": (Fixup("a..b", patch="words"),)}, "fixups.0.patch", "no patch"),
        ({"fixups": (Fixup("a..b", patch="x" * (256 * 1024 + 1)),)}, "fixups.0.patch", "262145 bytes"),
        ({"fixups": (Fixup("a..b", cherry_pick="c"),) * 101}, "fixups", "101 fix-ups"),
    ],
)
def test_each_mistake_is_named_with_its_field(change: dict, field: str, said: str) -> None:
    error = refused(replace(PLAIN, **change))
    assert error.field == field
    assert said in error.detail


def test_a_script_of_exactly_256_kib_is_taken() -> None:
    assert done(replace(PLAIN, script="#" * 256 * 1024))


def test_a_sandbox_that_the_operator_does_not_allow_is_refused() -> None:
    only_docker = Policy(frozenset({SandboxKind.DOCKER}), SandboxKind.DOCKER)
    assert refused(replace(PLAIN, sandbox="process"), only_docker).field == "sandbox"


@pytest.mark.parametrize(
    ("text", "value"), [("20m", 1200), ("1h30m", 5400), ("90s", 90), ("5", 5), (7, 7), ("2d", 172800)]
)
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text, field="x") == value


@given(st.text())
def test_a_duration_is_a_number_or_an_error_and_nothing_else(text: str) -> None:
    try:
        assert 0 < seconds(text, field="x") < 30 * 86400
    except BadRequest as error:
        assert error.field == "x"


@given(st.floats(min_value=0, max_value=10**6))
def test_spoken_durations_never_say_sixty(value: float) -> None:
    assert not re.search(r"\b60(\.0)? (s|min)", spoken(value))


@given(
    st.builds(
        Submission,
        good=st.tuples(st.text()),
        bad=st.text(),
        repo=st.text(),
        script=st.text(),
        env=st.dictionaries(st.text(), st.text()),
        native_paths=st.none() | st.lists(st.text(min_size=1, max_size=8), max_size=2).map(tuple),
        as_of=st.none() | st.text(),
        constraints=st.none() | st.text(),
        fixups=st.lists(st.builds(Fixup, st.text(), st.text(), st.none()), max_size=1).map(tuple),
    )
)
def test_any_submission_is_completed_or_refused(submission: Submission) -> None:
    try:
        assert done(submission).bad == submission.bad
    except UserError as error:
        assert error.field
