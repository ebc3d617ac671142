"""Signing in by GitHub, against a GitHub that checks what the real one does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from service.adapters.github_sign_in import GitHubSignIn
from service.domain.sign_in import Person, SignInRefused, SignInUnavailable
from tests.fakes.github import FakeGitHub
from tests.fakes.server import serving

CALLBACK = "https://firstbad.example.org/sign-in/callback"
GROUPS = ("acme/*", "acme/gpu-team")
VERIFIER = "v" * 64


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeGitHub, str]]:
    github = FakeGitHub(callback=CALLBACK)
    with serving(github.app()) as url:
        yield github, url


@pytest.fixture
def github(served: tuple[FakeGitHub, str]) -> FakeGitHub:
    fake = served[0]
    fake.signed_in, fake.denies = "ann", False
    fake.members, fake.broken = {"acme/*": {"ann": "active"}, "acme/gpu-team": {"ann": "active"}}, {}
    return fake


@pytest.fixture
def ours(served: tuple[FakeGitHub, str], github: FakeGitHub) -> GitHubSignIn:
    url = served[1]
    return GitHubSignIn(github.client_id, github.client_secret, CALLBACK, GROUPS, url, url)


def code_of(ours: GitHubSignIn, verifier: str = VERIFIER) -> str:
    """What GitHub sends the browser back with."""
    answer = httpx.get(ours.address("the-state", verifier), trust_env=False)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["location"])
    said = parse_qs(back.query)
    assert f"{back.scheme}://{back.netloc}{back.path}" == CALLBACK
    assert said["state"] == ["the-state"]
    return said["code"][0]


def test_who_signed_in_comes_with_the_groups_that_grants_name(ours: GitHubSignIn) -> None:
    assert ours.person(code_of(ours), VERIFIER) == Person("ann", frozenset(GROUPS))


def test_a_membership_that_was_not_accepted_is_none(ours: GitHubSignIn, github: FakeGitHub) -> None:
    github.members = {"acme/*": {"ann": "active"}, "acme/gpu-team": {"ann": "pending"}}
    assert ours.person(code_of(ours), VERIFIER).groups == {"acme/*"}
    github.members = {}
    assert ours.person(code_of(ours), VERIFIER) == Person("ann")


def test_nothing_but_the_name_is_asked_for_where_no_grant_names_a_group(ours: GitHubSignIn) -> None:
    alone = replace(ours, groups=())
    assert parse_qs(urlsplit(alone.address("s", VERIFIER)).query).get("scope") is None
    assert alone.person(code_of(alone), VERIFIER) == Person("ann")


def test_a_code_works_once_and_for_whom_it_was_asked_alone(ours: GitHubSignIn) -> None:
    code = code_of(ours)
    with pytest.raises(SignInRefused, match="bad_verification_code"):
        ours.person(code, "another verifier, as of who took the code on its way")
    code = code_of(ours)
    ours.person(code, VERIFIER)
    with pytest.raises(SignInRefused, match="bad_verification_code"):
        ours.person(code, VERIFIER)


def test_settings_that_do_not_match_are_named_without_the_secret(ours: GitHubSignIn) -> None:
    wrong = replace(ours, client_secret="not-this-one-1234")
    with pytest.raises(SignInRefused, match="incorrect_client_credentials") as refused:
        wrong.person(code_of(ours), VERIFIER)
    assert "not-this-one" not in f"{refused.value.detail}{refused.value.advice}{wrong!r}"


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("/login/oauth/access_token", PlainTextResponse("oops", 500), "answered 500"),
        ("/login/oauth/access_token", PlainTextResponse("<html>"), "no JSON"),
        ("/login/oauth/access_token", JSONResponse([1]), "something else"),
        ("/login/oauth/access_token", JSONResponse({"access_token": ""}), "no access_token"),
        ("/user", JSONResponse({"login": None}), "no login"),
        ("/user", PlainTextResponse("x" * 400_000), "more than"),
        ("/user", RedirectResponse("http://127.0.0.1:1/"), "answered 307"),
    ],
)
def test_an_answer_that_is_none_ends_the_sign_in(
    ours: GitHubSignIn, github: FakeGitHub, path: str, answer: Response, said: str
) -> None:
    code = code_of(ours)
    github.broken = {path: answer}
    with pytest.raises(SignInUnavailable, match=said):
        ours.person(code, VERIFIER)


def test_a_github_that_is_away_is_told_as_that(ours: GitHubSignIn) -> None:
    away = replace(ours, web="http://127.0.0.1:1")
    with pytest.raises(SignInUnavailable, match=r"127\.0\.0\.1 cannot be reached"):
        away.person("code", VERIFIER)
