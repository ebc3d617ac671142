"""The same door before the real flow: SQLite, Redis and git, with nobody at work who would take the orders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from service import wiring
from service.adapters.database import migrate
from service.application.flow import Flow
from service.embedded_redis import EmbeddedRedis
from service.web import create_app
from tests.api.test_any_body import almost
from tests.fakes.server import serving
from tests.repositories import NewCommit, build_repository

PATH = "/api/v1/bisections"


@dataclass(frozen=True)
class Service:
    flow: Flow
    http: httpx.Client
    request: dict[str, str]

    def submit(self, **changes: str) -> str:
        answer = self.http.post(PATH, json={**self.request, **changes})
        assert answer.status_code == 201, answer.text
        id: str = answer.json()["id"]
        return id


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    repo = folder / "repo"
    build_repository(repo, [NewCommit(f"change {number}") for number in range(9)], tags={"v1": 0}, branches={"main": 8})
    with EmbeddedRedis(folder / "redis") as redis_url:
        given_settings = wiring.settings(home=folder / "home", redis_url=redis_url)
        given_settings.home_dir.mkdir()
        migrate.upgrade(given_settings.database)
        flow = wiring.wire(given_settings).flow
        request = {"repo": str(repo), "good": "v1", "bad": "main", "script": "false", "project": "source"}
        with serving(create_app(flow)) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            yield Service(flow, http, request)


def test_a_submission_is_looked_up_and_its_ends_are_told(service: Service) -> None:
    id = service.submit()
    service.flow.prepare(id)
    report = service.http.get(f"{PATH}/{id}").json()
    assert (report["state"], report["candidates"], report["candidates_left"]) == ("checking ends", 8, 8)
    assert report["ends"]["good"][0]["subject"] == "change 0"
    assert report["ends"]["bad"]["subject"] == "change 8"
    probes = service.http.get(f"{PATH}/{id}/probes").json()["items"]
    assert [(probe["id"], probe["purpose"], probe["state"]) for probe in probes] == [(f"{id}.1", "bad end", "queued")]
    assert service.http.get(f"/api/v1/probes/{id}.1/log").status_code == 409
    kinds = [event["kind"] for event in service.http.get(f"{PATH}/{id}/events").json()["items"]]
    assert kinds[0] == "state" and "planned" in kinds


def test_an_unknown_ref_ends_as_refused_with_its_field(service: Service) -> None:
    id = service.submit(good="v9")
    service.flow.prepare(id)
    report = service.http.get(f"{PATH}/{id}").json()
    assert (report["state"], report["problem"]["field"]) == ("refused", "good")
    assert "v9" in report["problem"]["detail"]
    assert service.http.delete(f"{PATH}/{id}").status_code == 409


def test_a_cancelled_bisection_stays_cancelled(service: Service) -> None:
    id = service.submit()
    service.flow.prepare(id)
    assert service.http.delete(f"{PATH}/{id}").json()["state"] == "cancelled"
    probes = service.http.get(f"{PATH}/{id}/probes").json()["items"]
    assert {probe["state"] for probe in probes} == {"cancelled"}
    assert service.http.get(f"/api/v1/probes/{id}.1/log").status_code == 404
    service.flow.sweep()
    assert service.http.get(f"{PATH}/{id}").json()["state"] == "cancelled"


@pytest.mark.parametrize("repo", ["ext::sh -c id", "-x", "http://git.example.org/x.git", "ftp://x/y", "x\ny"])
def test_a_repository_that_git_must_not_be_asked_for_is_refused_at_once(service: Service, repo: str) -> None:
    answer = service.http.post(PATH, json={**service.request, "repo": repo})
    assert (answer.status_code, answer.json()["field"]) == (422, "repo")


def test_without_a_control_worker_the_service_is_alive_and_not_ready(service: Service) -> None:
    assert service.http.get("/healthz").status_code == 200
    answer = service.http.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == {
        "database": "ok",
        "queue": "ok",
        "control": "no control worker has said anything yet",
        "workers": "no worker has reported in the last minute",
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=almost)
def test_whatever_is_asked_for_is_kept_or_refused(service: Service, body: object) -> None:
    answer = service.http.post(PATH, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
    assert answer.status_code in (201, 413, 422), answer.text
    if answer.status_code == 201:
        assert service.http.get(answer.headers["location"]).status_code == 200


def test_the_repository_of_a_request_may_be_written_with_its_scheme(service: Service) -> None:
    id = service.submit(repo=Path(service.request["repo"]).as_uri())
    service.flow.prepare(id)
    assert service.http.get(f"{PATH}/{id}").json()["state"] == "checking ends"


def test_a_clone_and_a_verdict_by_hand_are_kept(service: Service) -> None:
    id = service.submit()
    made = service.http.post(f"{PATH}/{id}/clone", json={"width": 2}, headers={"Idempotency-Key": "again"})
    assert made.status_code == 201, made.text
    again = service.http.post(f"{PATH}/{id}/clone", json={"width": 2}, headers={"Idempotency-Key": "again"})
    assert again.json()["id"] == made.json()["id"]
    kept = service.flow.bisection(made.json()["id"])
    assert replace(kept.request, width=1) == service.flow.bisection(id).request
    service.flow.prepare(kept.id)
    report = service.http.get(f"{PATH}/{kept.id}").json()
    bad = report["ends"]["bad"]["sha"]
    for _ in range(2):
        said = service.http.post(
            f"{PATH}/{kept.id}/overrides", json={"commit": bad[:8], "verdict": "good", "why": "it works here"}
        )
        assert said.status_code == 200, said.text
    shown = service.http.get(f"{PATH}/{kept.id}").json()
    assert [(one["sha"], one["verdict"], one["why"]) for one in shown["overrides"]] == [(bad, "good", "it works here")]
    for format in ("json", "md", "html", "log", "junit"):
        assert service.http.get(f"{PATH}/{kept.id}/report", params={"format": format}).status_code == 200
