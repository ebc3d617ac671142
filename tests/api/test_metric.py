"""A metric over the commits, as numbers and as a picture."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from xml.etree import ElementTree as ET

import httpx
import pytest

from firstbad import Client
from service.application.curve import Side
from service.search.metric.samples import Interval
from tests.api.measured import METRIC, begun
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.doors.curves import STEP, stepped
from tests.fakes.flow import FakeFlow, sha

API = "/api/v1"


def test_the_numbers_of_each_commit_come_with_their_intervals_and_runs(http: httpx.Client, flow: FakeFlow) -> None:
    told = http.get(f"{API}/bisections/{begun(flow)}/metric").json()
    curve = stepped()
    assert (told["name"], told["unit"], told["better"], told["candidates"]) == (curve.name, "tok/s", "higher", 249)
    assert [point["position"] for point in told["points"]] == [point.position for point in curve.points]
    first_bad = next(point for point in told["points"] if point["position"] == STEP)
    level = next(point.level for point in curve.points if point.position == STEP)
    assert level is not None
    assert first_bad["level"] == {"estimate": level.estimate, "low": level.low, "high": level.high}
    assert (first_bad["sha"], first_bad["verdict"], len(first_bad["runs"])) == (sha(STEP), "bad", 6)
    step = {"shas": [sha(STEP)], "first": STEP, "last": STEP, "relative": True}
    assert told["steps"] == [{**step, "size": {"estimate": 0.121, "low": 0.094, "high": 0.148}}]
    runs = told["points"][1]["runs"]
    assert [run["dropped"] for run in runs].count("the node had drifted") == 1
    assert runs[1]["marks"] == ["throttled: power cap"]
    assert len(told["good"]["values"]) == 20


def test_what_json_cannot_hold_is_null(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow, replace(stepped(), good=Side((1.0, inf), Interval(1.0, -inf, inf))))
    answer = http.get(f"{API}/bisections/{id}/metric")
    assert answer.json()["good"] == {"values": [1.0, None], "level": {"estimate": 1.0, "low": None, "high": None}}


def test_before_anything_is_measured_it_is_empty_but_whole(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow)
    del flow.curves[id]
    told = http.get(f"{API}/bisections/{id}/metric").json()
    assert (told["name"], told["points"], told["steps"], told["left"]) == (METRIC.name, [], [], None)
    assert b"nothing is measured yet" in http.get(f"{API}/bisections/{id}/metric.svg").content


@pytest.mark.parametrize("path", ["metric", "metric.svg"])
def test_a_bisection_without_a_metric_has_none(http: httpx.Client, flow: FakeFlow, path: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    answer = http.get(f"{API}/bisections/{id}/{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["detail"] == f"bisection {id} looks for a failure and measures nothing"
    assert http.get(f"{API}/bisections/gone/{path}").status_code == 404


def test_the_links_of_a_bisection_lead_to_its_numbers_its_picture_and_its_page(
    http: httpx.Client, flow: FakeFlow
) -> None:
    links = http.get(f"{API}/bisections/{begun(flow)}").json()["links"]
    kinds = {name: http.get(path).headers["content-type"] for name, path in links.items()}
    assert kinds["metric"] == "application/json"
    assert kinds["picture"] == "image/svg+xml"
    assert kinds["page"] == "text/html; charset=utf-8"


def test_a_picture_is_sent_again_only_when_it_has_changed(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow)
    path = f"{API}/bisections/{id}/metric.svg"
    first = http.get(path)
    assert ET.fromstring(first.content).tag == "{http://www.w3.org/2000/svg}svg"
    tag = first.headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    flow.curves[id] = replace(stepped(), headline="Another commit is the first bad one")
    changed = http.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    assert b"Another commit is the first bad one" in changed.content


def test_nothing_in_a_picture_may_run_or_load(http: httpx.Client, flow: FakeFlow) -> None:
    headers = http.get(f"{API}/bisections/{begun(flow)}/metric.svg").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert headers["cache-control"] == "private, no-cache"


def test_the_client_reads_what_the_service_tells(http: httpx.Client, flow: FakeFlow) -> None:
    with Client(str(http.base_url)) as client:
        curve = client.curve(client.bisection(begun(flow)))
        assert curve is not None
        assert [point.sha for point in curve.points] == [point.sha for point in stepped().points]
        assert client.curve(client.bisection(flow.submit(SUBMISSION, TESTER).id)) is None
