"""What a user may write, and what is said when it cannot be used."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.recipes import load
from service.application.ports import Policy
from service.application.submit import ServeForm, Submission, complete
from service.domain.duration import seconds, spoken
from service.domain.errors import BadRequest, UserError
from service.domain.recipe import Network, SandboxKind

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
    assert (request.recipe.network, request.width, request.timeout_s) == (Network.NONE, 1, 3600.0)


def test_the_request_goes_before_the_recipe() -> None:
    request = done(replace(PLAIN, build="make wheel", network="bridge", env={"A": "{sha}"}))
    assert (request.recipe.build_command, request.recipe.network) == ("make wheel", Network.BRIDGE)
    assert request.recipe.env == {"A": "{sha}"}


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
    )
)
def test_any_submission_is_completed_or_refused(submission: Submission) -> None:
    try:
        assert done(submission).bad == submission.bad
    except UserError as error:
        assert error.field
