"""Lists page by page over HTTP."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from service.domain.lifecycle import BuildState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow

API = "/api/v1"


def pages(http: httpx.Client, path: str) -> list[list[Any]]:
    """The items of each page, by its links."""
    found = []
    following: str | None = path
    while following is not None:
        answer = http.get(following)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["items"])
        following = answer.json()["next"]
        assert (answer.links.get("next") or {}).get("url") == following
    return found


def test_each_page_leads_to_the_next_and_what_is_begun_meanwhile_moves_nothing(
    http: httpx.Client, flow: FakeFlow
) -> None:
    ids = [flow.submit(SUBMISSION, TESTER).id for _ in range(5)]
    first = http.get(f"{API}/bisections?limit=2&state=queued").json()
    flow.submit(SUBMISSION, TESTER)
    rest = pages(http, first["next"])
    assert "state=queued" in first["next"]
    assert [one["id"] for page in (first["items"], *rest) for one in page] == ids[::-1]


def test_probes_builds_and_nodes_come_in_pages_too(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    for probe in flow.probes(id):
        flow.build(probe, BuildState.BUILT)
    probes = pages(http, f"{API}/bisections/{id}/probes?limit=3")
    assert [[probe["number"] for probe in page] for page in probes] == [[1, 2, 3], [4]]
    assert [len(page) for page in pages(http, f"{API}/bisections/{id}/builds?limit=3")] == [3, 1]
    assert [[node["name"] for node in page] for page in pages(http, f"{API}/nodes?limit=1")] == [["node-1"]]


def test_a_build_a_node_and_a_recipe_are_found_by_name(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    key = flow.build(flow.plan(id, 8), BuildState.BUILT).key
    assert http.get(f"{API}/builds/{key}").json()["state"] == "built"
    assert http.get(f"{API}/nodes/node-1").json()["slots"] == 2
    assert http.get(f"{API}/recipes/python").json()["name"] == "python"
    assert [recipe["name"] for recipe in http.get(f"{API}/recipes").json()["items"]] == ["python", "source"]
    for path in ("builds/none", "nodes/none", "recipes/none"):
        assert http.get(f"{API}/{path}").status_code == 404


@pytest.mark.parametrize(
    "written", ['["bisections -created"]', '["other","2026-01-01T00:00:00","b"]', '["bisections -created","x","b"]']
)
def test_a_cursor_that_is_none_is_refused(http: httpx.Client, written: str) -> None:
    cursor = base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")
    answer = http.get(f"{API}/bisections?cursor={cursor}")
    assert (answer.status_code, answer.json()["field"]) == (422, "cursor")
    assert http.get(f"{API}/bisections?cursor=%20").status_code == 422


def test_a_cursor_of_one_order_is_none_of_another(http: httpx.Client, flow: FakeFlow) -> None:
    for _ in range(2):
        flow.submit(SUBMISSION, TESTER)
    following = http.get(f"{API}/bisections?limit=1&sort=created").json()["next"]
    assert http.get(following.replace("sort=created", "sort=-created")).status_code == 422
