from __future__ import annotations

import logging
from importlib.metadata import version

import httpx
import pytest

from service.web import SECURITY_HEADERS, create_app
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

API = "/api/v1"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", f"{API}/bisections/b3f9c2a417", 404),
        ("GET", f"{API}/bisections/b3f9c2a417/probes", 404),
        ("GET", f"{API}/bisections/b3f9c2a417/events", 404),
        ("GET", f"{API}/bisections/b3f9c2a417/probes/1/log", 404),
        ("GET", f"{API}/probes/b3f9c2a417.1", 404),
        ("GET", f"{API}/probes/b3f9c2a417.1/log", 404),
        ("DELETE", f"{API}/bisections/b3f9c2a417", 404),
        ("PUT", f"{API}/bisections", 405),
        ("GET", f"{API}/bisections/{'x' * 65}", 422),
        ("GET", f"{API}/bisections/a%00b", 422),
        ("GET", f"{API}/bisections/a%ffb", 422),
        ("GET", f"{API}/probes/b3f9c2a417", 422),
        ("GET", f"{API}/bisections?state=lost", 422),
        ("GET", f"{API}/bisections?limit=0", 422),
        ("GET", f"{API}/bisections?limit=1000", 422),
        ("GET", f"{API}/bisections/b3f9c2a417/events?after=-1", 422),
        ("GET", f"{API}/bisections/b3f9c2a417/events?after={2**70}", 422),
        ("GET", f"{API}/bisections/b3f9c2a417/probes/{2**70}/log", 422),
    ],
)
def test_every_error_is_a_problem(http: httpx.Client, method: str, path: str, status: int) -> None:
    answer = http.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"] and problem["detail"] and problem["instance"]
    assert problem["type"].startswith("/problems/")


def test_what_is_wrong_in_a_query_is_named(http: httpx.Client) -> None:
    problem = http.get(f"{API}/bisections?limit=many").json()
    assert (problem["field"], problem["value"]) == ("limit", "many")


def test_the_root_tells_what_answers_and_its_links_lead_somewhere(http: httpx.Client) -> None:
    root = http.get("/").json()
    assert (root.pop("name"), root.pop("version")) == ("firstbad", version("firstbad"))
    assert set(root) == {"api", "openapi", "health"}
    assert all(http.get(path).status_code == 200 for path in root.values())


def test_the_openapi_document_is_found_where_it_is_looked_for(http: httpx.Client) -> None:
    answer = http.get("/openapi.json")
    assert (answer.status_code, answer.headers["location"]) == (307, f"{API}/openapi.json")


def test_a_wrong_method_is_told_a_right_one(http: httpx.Client) -> None:
    assert http.put(f"{API}/bisections/b3f9c2a417/probes").headers["allow"] in ("GET", "POST")


def test_what_nobody_expected_tells_no_internals_and_is_logged(
    http: httpx.Client, flow: FakeFlow, caplog: pytest.LogCaptureFixture
) -> None:
    flow.broken = RuntimeError("postgresql://user:password@db")
    with caplog.at_level(logging.ERROR):
        answer = http.get(f"{API}/bisections/b3f9c2a417")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "password" not in answer.text and "RuntimeError" not in answer.text
    assert "logs/api.log" in answer.json()["advice"]
    assert any("postgresql://user:password@db" in (record.exc_text or "") for record in caplog.records)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "127.0.0.1@evil", ""])
def test_a_request_for_another_host_is_refused(http: httpx.Client, host: str) -> None:
    answer = http.get("/healthz", headers={"host": host})
    assert answer.status_code in (400, 421)
    assert answer.status_code == 400 or answer.json()["type"] == "/problems/wrong-host"


@pytest.mark.parametrize("host", ["localhost", "LocalHost:8377", "127.0.0.1:1", "[::1]", "[::1]:8377"])
def test_the_names_of_this_machine_are_served(http: httpx.Client, host: str) -> None:
    assert http.get("/healthz", headers={"host": host}).status_code == 200


def test_an_operator_can_allow_other_names(flow: FakeFlow) -> None:
    with serving(create_app(flow, allowed_hosts=["bisect.example.org"])) as url:
        asked = httpx.get(f"{url}/healthz", headers={"host": "bisect.example.org"}, trust_env=False)
        assert asked.status_code == 200
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 421


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", f"{API}/bisections", f"{API}/bisections?limit=0"])
def test_every_answer_has_the_security_headers(http: httpx.Client, path: str) -> None:
    headers = http.get(path).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_no_other_site_may_read_an_answer(http: httpx.Client) -> None:
    answer = http.get(f"{API}/bisections", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    preflight = http.options(
        f"{API}/bisections", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 405


def test_ready_names_the_part_that_is_down(http: httpx.Client, flow: FakeFlow) -> None:
    assert http.get("/readyz").json() == {"status": "ok", "parts": flow.parts}
    flow.parts = {**flow.parts, "queue": "Connection refused"}
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["queue"]) == (503, "Connection refused")
    assert http.get("/healthz").json()["status"] == "ok"


def test_what_is_asked_for_while_no_worker_is_there_waits_so_the_service_is_ready(
    http: httpx.Client, flow: FakeFlow
) -> None:
    flow.parts = {**flow.parts, "workers": "no worker has reported"}
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["workers"]) == (200, "no worker has reported")
