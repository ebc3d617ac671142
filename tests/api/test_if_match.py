"""Changes that are made for one report, and refused once the bisection is another one."""

from __future__ import annotations

import httpx
import pytest

from service.domain.bisection import Bisection
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow, sha

PATH = "/api/v1/bisections"
#: Each change, by the method, the way from a bisection, and the body.
CHANGES = [
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("PATCH", "", {"priority": "low", "budget": {"probes": 9}}),
    ("POST", "/overrides", {"commit": sha(3), "verdict": "bad", "why": "x"}),
    ("DELETE", "", None),
]


@pytest.fixture
def made(flow: FakeFlow) -> Bisection:
    made = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(made, 8)
    return flow.bisection(made)


@pytest.mark.parametrize(("method", "way", "body"), CHANGES)
def test_a_change_is_made_for_the_report_that_was_read_and_for_no_older_one(
    http: httpx.Client, flow: FakeFlow, made: Bisection, method: str, way: str, body: object
) -> None:
    old = http.get(f"{PATH}/{made.id}").headers["etag"]
    paused = flow.pause(made.id, "bob")
    new = http.get(f"{PATH}/{made.id}").headers["etag"]
    for stale in (old, f'{old}, "0-0"', f"W/{new}"):
        answer = http.request(method, f"{PATH}/{made.id}{way}", json=body, headers={"If-Match": stale})
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (412, "/problems/precondition-failed")
        assert problem["field"] == "If-Match" and new.strip('"') in problem["detail"]
        assert stale.strip('"')[:10] in problem["detail"] and "get it again" in problem["advice"]
        assert flow.bisection(made.id) == paused
    answer = http.request(method, f"{PATH}/{made.id}{way}", json=body, headers={"If-Match": f"{old}, {new}"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("method", "way", "body"), CHANGES)
def test_a_star_or_none_is_for_whichever_there_is(
    http: httpx.Client, made: Bisection, method: str, way: str, body: object
) -> None:
    for headers in ({}, {"If-Match": "*"}):
        assert http.request(method, f"{PATH}/{made.id}{way}", json=body, headers=headers).status_code == 200
        assert http.request(method, f"{PATH}/b0{way}", json=body, headers=headers).status_code == 404


@pytest.mark.parametrize("header", ["", "1-2", '"1', '"*"', '"1" "2"', "W/", ",", '"é"'.encode(), b'"1-2"' * 200])
def test_what_is_no_tag_changes_nothing(http: httpx.Client, flow: FakeFlow, made: Bisection, header: str) -> None:
    answer = http.post(f"{PATH}/{made.id}/pause", headers={"If-Match": header})
    assert (answer.status_code, answer.json()["field"].lower()) == (422, "if-match")
    assert flow.bisection(made.id) == made


def test_each_that_takes_it_says_so(http: httpx.Client) -> None:
    paths = http.get("/api/v1/openapi.json").json()["paths"]
    taking = {
        f"{method} {path}"
        for path, item in paths.items()
        for method, said in item.items()
        if any(one.get("name") == "If-Match" for one in said.get("parameters", ()))
    }
    assert taking == {f"{method.lower()} {PATH}/{{id}}{way}" for method, way, _ in CHANGES}
    refusing = {
        f"{method} {path}"
        for path, item in paths.items()
        for method, said in item.items()
        if "412" in said["responses"]
    }
    assert refusing == taking
