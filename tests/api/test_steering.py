"""Pausing, resuming and priorities over the API, what a bisection has spent, and requests that are sent twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from service.domain.bisection import Node
from service.domain.budget import Budget, Priority
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.spending import spent
from tests.api.requests import MINIMAL, SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow

PATH = "/api/v1/bisections"
#: Each change, by the method, the way from a bisection, and the body.
CHANGES = [
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("PATCH", "", {"priority": "low"}),
    ("DELETE", "", None),
]


def test_a_paused_bisection_says_since_when_until_it_is_resumed(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    assert http.get(f"{PATH}/{id}").json()["paused_at"] is None
    paused = [http.post(f"{PATH}/{id}/pause").json() for _ in range(2)]
    assert paused[0]["paused_at"] == paused[1]["paused_at"] is not None
    assert http.get(PATH).json()["items"][0]["paused_at"] == paused[0]["paused_at"]
    assert [http.post(f"{PATH}/{id}/resume").json()["paused_at"] for _ in range(2)] == [None, None]


@pytest.mark.parametrize("media_type", ["application/json", "application/merge-patch+json", "application/yaml"])
def test_a_priority_is_changed_by_a_patch(http: httpx.Client, flow: FakeFlow, media_type: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    answer = http.patch(f"{PATH}/{id}", content='{"priority": "high"}', headers={"content-type": media_type})
    assert (answer.status_code, answer.json()["priority"]) == (200, "high")
    assert flow.bisection(id).priority is Priority.HIGH


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "priority"),
        ({"priority": "urgent"}, "priority"),
        ({"priority": None}, "priority"),
        ({"priorty": "high"}, "priorty"),
        ({"priority": "high", "state": "found"}, "state"),
    ],
)
def test_what_cannot_be_changed_is_named(http: httpx.Client, flow: FakeFlow, body: object, field: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    answer = http.patch(f"{PATH}/{id}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert http.patch(f"{PATH}/{id}", content=b"priority=high").status_code == 415
    assert flow.bisection(id).priority is Priority.NORMAL


@pytest.mark.parametrize(("method", "way", "body"), CHANGES)
def test_what_has_ended_or_never_was_is_not_changed(
    http: httpx.Client, flow: FakeFlow, method: str, way: str, body: object
) -> None:
    ended = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    for id, status in ((ended, 409), ("b0", 404), ("b%00", 422)):
        answer = http.request(method, f"{PATH}/{id}{way}", json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.json()["status"] == status
    assert flow.bisection(ended).state is BisectionState.FOUND


@pytest.mark.parametrize(("method", "way", "body"), CHANGES)
def test_a_page_of_another_site_changes_nothing(
    http: httpx.Client, flow: FakeFlow, method: str, way: str, body: object
) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    before = flow.bisection(id)
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        answer = http.request(method, f"{PATH}/{id}{way}", json=body, headers={"origin": origin})
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/other-site")
    assert flow.bisection(id) == before
    assert http.request(method, f"{PATH}/{id}{way}", json=body, headers={"origin": str(http.base_url)}).is_success


def test_a_report_says_what_is_spent_of_what(http: httpx.Client, flow: FakeFlow) -> None:
    body = {**MINIMAL, "resources": {"gpus": 2}, "budget": {"probes": 40, "wall": "6h", "gpu_hours": 20}}
    id = http.post(PATH, json=body).json()["id"]
    flow.look_up(id, 8)
    done = flow.judge(flow.plan(id, 8), Verdict.BAD, "failed")
    flow.tried[done.id] = replace(done, gpu_leased_s=7200.0, gpu_used_s=7000.0)
    flow.plan(id, 0, state=ProbeState.QUEUED, started_at=None, node=None)
    report = http.get(f"{PATH}/{id}").json()
    assert (report["spent"]["probes"], report["spent"]["gpu_s"], report["probes_waiting"]) == (1, 7200.0, 1)
    assert report["request"]["budget"] == {"probes": 40, "wall_s": 21600.0, "gpu_s": 72000.0}
    tried, waiting = http.get(f"{PATH}/{id}/probes").json()["items"]
    assert (tried["gpu_leased_s"], tried["gpu_used_s"]) == (7200.0, 7000.0)
    assert (waiting["state"], waiting["sent_at"], waiting["queue"]) == ("queued", None, "cpu")


def test_pauses_and_what_runs_are_counted_as_the_budget_counts_them(flow: FakeFlow) -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    found = replace(flow.submit(SUBMISSION, TESTER), created_at=begun, paused_s=100.0)
    recipe = replace(found.request.recipe, resources=replace(found.request.recipe.resources, gpus=4))
    found = replace(found, request=replace(found.request, recipe=recipe, budget=Budget(wall_s=60.0)))
    now = begun + timedelta(seconds=1000)
    running = flow.plan(found.id, 3, leased_at=now - timedelta(seconds=10), gpu_leased_s=5.0)
    assert spent(found, [running], now).gpu_s == 45.0
    assert spent(found, [], now).wall_s == 900.0
    assert spent(replace(found, paused_at=now - timedelta(seconds=300)), [], now).wall_s == 600.0
    assert spent(replace(found, ended_at=begun + timedelta(seconds=400)), [], now).wall_s == 300.0


def test_a_log_that_was_removed_is_gone_and_not_unknown(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    probe = flow.judge(flow.plan(id, 8), Verdict.BAD, "failed")
    build = flow.build(probe, BuildState.FAILED)
    removed = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    flow.tried[probe.id] = replace(flow.tried[probe.id], log_removed_at=removed)
    flow.made[build.key] = replace(build, log_removed_at=removed)
    for path in (f"/api/v1/probes/{probe.id}/log", f"/api/v1/builds/{build.key}/log", f"{PATH}/{id}/probes/1/log"):
        for query in ("", "?follow=true"):
            answer = http.get(path + query)
            assert (answer.status_code, answer.json()["type"]) == (410, "/problems/removed")
            assert "was removed on 2026-03-04 at 05:06 UTC" in answer.json()["detail"]
            assert "FIRSTBAD_" in answer.json()["detail"]
            assert ("last_lines" in answer.json().get("advice", "")) == ("builds" not in path)
    shown = http.get(f"/api/v1/probes/{probe.id}").json()
    assert shown["log_removed_at"] == "2026-03-04T05:06:00Z"
    assert shown["outcome"]["log"]["last_lines"] == ["one", "two"]


def test_nodes_say_what_labels_and_models_they_have(http: httpx.Client, flow: FakeFlow) -> None:
    seen = datetime.now(UTC)
    flow.machines = (Node("n1", 2, seen, "alive", labels=("nvlink",), models=("Qwen/Qwen3-8B",)),)
    (node,) = http.get("/api/v1/nodes").json()["items"]
    assert (node["labels"], node["models"]) == (["nvlink"], ["Qwen/Qwen3-8B"])


def test_the_key_of_a_request_arrives(http: httpx.Client, flow: FakeFlow) -> None:
    http.post(PATH, json=MINIMAL)
    http.post(PATH, json=MINIMAL, headers={"Idempotency-Key": "nightly 1"})
    assert flow.keys == [None, "nightly 1"]
    answer = http.post(PATH, json=MINIMAL, headers={"Idempotency-Key": "x" * 201})
    assert (answer.status_code, answer.json()["field"].lower()) == (422, "idempotency-key")
