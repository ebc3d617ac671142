"""Who is let in, and to what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from firstbad import Client, ProblemError
from service.domain.access import Caller, Scope, covers
from service.doors.gate import Gate
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

API = "/api/v1"
#: What a caller needs for each call; all others that change something need `submit`.
MORE = {"judgeAgain": Scope.OPERATE, "returnNode": Scope.OPERATE}
MORE |= dict.fromkeys(("createWebhook", "listWebhooks", "getWebhook", "removeWebhook", "testWebhook"), Scope.OPERATE)


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[FakeFlow, str]]:
    flow = FakeFlow()
    with serving(create_app(flow, gate=Gate(open=False, rate="100000/minute"))) as url:
        yield flow, url


@pytest.fixture
def texts(guarded: tuple[FakeFlow, str]) -> dict[Scope, str]:
    flow = guarded[0]
    flow.reset()
    return {scope: flow.create_token(str(scope), scope, "test")[1] for scope in Scope}


def asked(url: str, token: str | None = None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, trust_env=False, timeout=30, headers=headers)


def calls(http: httpx.Client) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path with something for each parameter, and what the document says of it."""
    document = http.get(f"{API}/openapi.json").json()
    return [
        (method.upper(), re.sub(r"\{[^}]+\}", "1", path), told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]


def test_nothing_but_healthz_answers_whom_nobody_knows(guarded: tuple[FakeFlow, str], texts: dict[Scope, str]) -> None:
    url = guarded[1]
    with asked(url, texts[Scope.READ]) as known, asked(url) as unknown:
        paths = [(method, path) for method, path, _ in calls(known)]
        paths += [
            ("GET", path) for path in ("/metrics", "/openapi.json", "/bisections/1", "/nothing", f"{API}/openapi.json")
        ]
        assert len(paths) > 30
        for method, path in paths:
            answer = unknown.request(method, path)
            assert answer.status_code == (200 if path == "/healthz" else 401), (method, path)
            if answer.status_code == 401:
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert answer.json()["type"] == "/problems/unauthenticated"


def test_every_call_that_changes_something_needs_more_than_to_read(
    guarded: tuple[FakeFlow, str], texts: dict[Scope, str]
) -> None:
    with asked(guarded[1], texts[Scope.READ]) as http:
        changing = [(method, path) for method, path, _ in calls(http) if method != "GET"]
        assert len(changing) > 10
        for method, path in changing:
            answer = http.request(method, path, json={})
            assert answer.status_code in (403, 404, 422), (method, path)
            assert answer.status_code == 403 or "/bisections/1" in path, (method, path, answer.text)


@pytest.mark.parametrize("held", Scope)
def test_each_call_asks_for_its_scope(guarded: tuple[FakeFlow, str], texts: dict[Scope, str], held: Scope) -> None:
    flow, url = guarded
    id = flow.submit(SUBMISSION, Caller(f"token:{held}", Scope.ADMIN)).id
    with asked(url, texts[held]) as http:
        for method, path, told in calls(http):
            if method == "GET" or "tokens" in path:
                continue
            wanted = MORE.get(told["operationId"], Scope.SUBMIT)
            answer = http.request(method, path.replace("/bisections/1", f"/bisections/{id}"), content=b"?")
            assert (answer.status_code == 403) == (not covers(held, wanted)), (method, path, answer.text)


def test_only_an_admin_makes_sees_and_revokes_tokens(guarded: tuple[FakeFlow, str], texts: dict[Scope, str]) -> None:
    url = guarded[1]
    with asked(url, texts[Scope.OPERATE]) as http:
        refused = [http.get(f"{API}/tokens"), http.post(f"{API}/tokens", json={"name": "x", "scope": "admin"})]
        assert [answer.status_code for answer in refused] == [403, 403]
        assert "admin" in refused[0].json()["advice"]
    with Client(url, texts[Scope.ADMIN]) as client:
        made = client.create_token("new", "submit", 2)
        assert [token.name for token in client.tokens().items][0] == "new"
        assert made.token not in str(client.tokens())
        with Client(url, made.token) as hers:
            hers.bisections()
            client.revoke_token(made.id)
            with pytest.raises(ProblemError) as refused_now:
                hers.bisections()
            assert refused_now.value.problem.status == 401
            assert made.token not in str(refused_now.value.problem)


def test_what_others_submitted_is_not_ones_own(guarded: tuple[FakeFlow, str], texts: dict[Scope, str]) -> None:
    flow, url = guarded
    id = flow.submit(SUBMISSION, Caller("token:another", Scope.SUBMIT)).id
    with asked(url, texts[Scope.SUBMIT]) as http:
        answer = http.delete(f"{API}/bisections/{id}")
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
        assert http.get(f"{API}/bisections/{id}").status_code == 200
    with asked(url, texts[Scope.OPERATE]) as http:
        assert http.delete(f"{API}/bisections/{id}").status_code == 200


def test_the_submitter_is_the_token(guarded: tuple[FakeFlow, str], texts: dict[Scope, str]) -> None:
    with asked(guarded[1], texts[Scope.SUBMIT]) as http:
        body = {"project": "python", "repo": "https://example.org/a.git", "good": "a", "bad": "b", "script": "true"}
        assert http.post(f"{API}/bisections", json=body).json()["submitter"] == "token:submit"


@pytest.mark.parametrize("written", ["Basic YTpi", "Bearer", "bearer x y", "fb_1_" + "a" * 43, "Bearer \u00fc"])
def test_what_is_no_token_that_works_is_refused(
    guarded: tuple[FakeFlow, str], texts: dict[Scope, str], written: str
) -> None:
    with asked(guarded[1]) as http:
        answer = http.get(f"{API}/nodes", headers={"Authorization": written.encode()})
        assert answer.status_code == 401


def test_where_all_may_read_nobody_unknown_changes_anything() -> None:
    flow = FakeFlow()
    with serving(create_app(flow, gate=Gate(open=False, public=True))) as url, asked(url) as http:
        assert http.get(f"{API}/bisections").status_code == 200
        assert http.post(f"{API}/bisections", json={}).status_code == 401
        assert http.get(f"{API}/tokens").status_code == 403
        assert http.get(f"{API}/nodes", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_more_than_so_many_requests_of_a_token_are_told_when_to_come_back() -> None:
    flow = FakeFlow()
    first, second = (flow.create_token(name, Scope.READ, "test")[1] for name in ("a", "b"))
    with serving(create_app(flow, gate=Gate(open=False, rate="5/hour"))) as url:
        with asked(url, first) as http:
            answers = [http.get(f"{API}/nodes") for _ in range(6)]
            assert [answer.status_code for answer in answers] == [200] * 5 + [429]
            assert [re.search(r"r=(\d+)", answer.headers["ratelimit"])[1] for answer in answers[:5]] == list("43210")
            assert 0 < int(answers[5].headers["retry-after"]) <= 3600
            assert http.get("/healthz").status_code == 200
        with asked(url, second) as http:
            assert http.get(f"{API}/nodes").status_code == 200


def test_who_guesses_tokens_is_stopped_and_others_are_not() -> None:
    flow = FakeFlow()
    text = flow.create_token("a", Scope.READ, "test")[1]
    with serving(create_app(flow, gate=Gate(open=False, failures="3/hour"))) as url:
        with asked(url, "fb_0_" + "a" * 43) as http:
            assert [http.get(f"{API}/nodes").status_code for _ in range(5)] == [401, 401, 401, 429, 429]
        with asked(url, text) as http:
            assert http.get(f"{API}/nodes").status_code == 200
