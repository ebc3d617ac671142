"""A call is sent again where that is harmless and may help, and not otherwise."""

from __future__ import annotations

import json

import pytest

from firstbad import (
    Changed,
    Client,
    Conflict,
    Forbidden,
    NoService,
    NotFound,
    ProblemError,
    Refused,
    Retry,
    TooMany,
    Unauthorized,
    Unavailable,
)
from service.domain.errors import BadRequest
from tests.client.scripted import Said, Script, problem

QUICK = Retry(times=2, first_s=0.001, most_s=0.01)
NODES = Said(body=b'{"items": []}')


def test_what_the_service_had_no_time_for_is_asked_again(script: Script) -> None:
    script.answers = [problem(503, **{"Retry-After": "0"}), problem(429), NODES]
    with Client(script.url, retry=QUICK) as client:
        assert client.nodes() == ()
    assert len(script.asked) == 3


def test_it_is_not_asked_for_ever(script: Script) -> None:
    script.answers = [problem(503)] * 3
    with Client(script.url, retry=QUICK) as client, pytest.raises(Unavailable, match="it is 503"):
        client.nodes()
    assert len(script.asked) == 3


def test_a_pause_that_is_too_long_is_told_and_not_waited_for(script: Script) -> None:
    script.answers = [problem(429, **{"Retry-After": "3600"})]
    with Client(script.url, retry=QUICK) as client, pytest.raises(TooMany) as met:
        client.nodes()
    assert met.value.after_s == 3600
    assert len(script.asked) == 1


@pytest.mark.parametrize("bad_day", [problem(502), Said(body=b"{", cut=True)])
def test_a_post_is_sent_again_with_the_same_key(script: Script, bad_day: Said) -> None:
    script.answers = [bad_day, problem(422)]
    with Client(script.url, retry=QUICK) as client, pytest.raises(Refused):
        client.submit({"good": "v1"})
    (_, _, first), (_, _, second) = script.asked
    assert first["idempotency-key"] == second["idempotency-key"]
    assert len(first["idempotency-key"]) >= 32


def test_two_submissions_have_two_keys_and_a_given_one_is_kept(script: Script) -> None:
    script.answers = [problem(422)] * 3
    with Client(script.url) as client:
        for key in (None, None, "nightly 1"):
            with pytest.raises(Refused):
                client.submit({}, key)
    first, second, third = (headers["idempotency-key"] for _, _, headers in script.asked)
    assert first != second
    assert third == "nightly 1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (410, NotFound),
        (409, Conflict),
        (412, Changed),
        (415, Refused),
        (422, Refused),
        (500, Unavailable),
    ],
)
def test_each_problem_has_its_type_and_is_not_asked_for_again(
    script: Script, status: int, kind: type[ProblemError]
) -> None:
    script.answers = [problem(status)]
    with Client(script.url, retry=QUICK) as client, pytest.raises(kind) as met:
        client.bisection("x")
    assert (met.value.problem.status, met.value.problem.advice) == (status, "wait")
    assert len(script.asked) == 1


def test_where_nobody_listens_is_asked_again_unless_told_otherwise() -> None:
    tried: list[float] = []

    class Counting(Retry):
        def pause_s(self, times: int, asked_s: float | None) -> float | None:
            tried.append(times)
            return super().pause_s(times, asked_s)

    for refused, times in ((True, 3), (False, 1)):
        tried.clear()
        retry = Counting(times=2, first_s=0.001, most_s=0.01, refused=refused)
        with Client("http://127.0.0.1:9", retry=retry) as client, pytest.raises(NoService, match="no firstbad answers"):
            client.nodes()
        assert len(tried) == times


def test_pauses_grow_to_a_limit_and_differ() -> None:
    retry = Retry(times=20, first_s=1.0, most_s=8.0)
    for tried, most in ((1, 1.0), (2, 2.0), (4, 8.0), (20, 8.0)):
        pauses = {retry.pause_s(tried, None) for _ in range(20)}
        assert all(pause is not None and most / 2 <= pause <= most for pause in pauses)
        assert len(pauses) > 1
    assert retry.pause_s(21, None) is None


def test_a_token_is_sent_and_one_that_is_none_is_not_shown(script: Script) -> None:
    script.answers = [NODES]
    with Client(script.url, token="fb_secret") as client:
        client.nodes()
    assert script.asked[0][2]["authorization"] == "Bearer fb_secret"
    with pytest.raises(BadRequest) as met:
        Client(script.url, token="se cret\n")
    assert "se cret" not in str(met.value) + met.value.advice + met.value.value


def test_a_list_is_read_to_its_last_page(script: Script) -> None:
    def node(name: str) -> dict[str, object]:
        return {"name": name, "slots": 1, "seen_at": "2026-01-01T00:00:00Z", "state": "alive", "facts": {}}

    first = {"items": [node("a")], "next": "/api/v1/nodes?limit=1&cursor=abc"}
    script.answers = [Said(body=json.dumps(page).encode()) for page in (first, {"items": [node("b")], "next": None})]
    with Client(script.url) as client:
        assert [one.name for one in client.nodes()] == ["a", "b"]
    assert [path for _, path, _ in script.asked] == ["/api/v1/nodes", "/api/v1/nodes?limit=1&cursor=abc"]


@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:9/api/v1/nodes", "//127.0.0.1:9/", "/metrics"])
def test_a_token_is_taken_nowhere_else_by_a_next_page(script: Script, elsewhere: str) -> None:
    script.answers = [Said(body=json.dumps({"items": [], "next": elsewhere}).encode())]
    with Client(script.url, token="t") as client, pytest.raises(NoService, match="next page"):
        client.nodes()
    assert len(script.asked) == 1
