"""What happens, as it happens: Server-Sent Events and reports that are waited for, over a real HTTP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service.domain.lifecycle import BisectionState
from service.doors.api.watching import Limits
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving
from tests.waiting import eventually

API = "/api/v1"
STREAM = {"accept": "text/event-stream"}


def events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """As the HTML standard reads a stream; comments are left out."""
    event: dict[str, Any] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            yield {"id": int(event.get("id", 0)), "event": event.get("event", ""), **json.loads(event["data"])}
            event = {}


@pytest.fixture
def id(flow: FakeFlow) -> str:
    return flow.submit(SUBMISSION, TESTER).id


def test_what_has_happened_comes_at_once_and_the_rest_as_it_does_until_the_end(
    http: httpx.Client, flow: FakeFlow, id: str
) -> None:
    with http.stream("GET", f"{API}/bisections/{id}/events", headers=STREAM) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        seen = events(answer)
        assert next(seen)["data"] == {"state": "queued"}
        other = flow.submit(SUBMISSION, TESTER).id
        flow.look_up(other, 4)
        flow.look_up(id, 8)
        assert next(seen)["id"] == flow.events(id)[-1].id
        flow.end(id, BisectionState.CANCELLED)
        rest = list(seen)
    assert [one["event"] for one in rest] == ["", "end"] and rest[-1]["state"] == "cancelled"


def test_a_stream_goes_on_from_the_last_id(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    flow.look_up(id, 8)
    first, second = (event.id for event in flow.events(id))
    with http.stream("GET", f"{API}/bisections/{id}/events", headers={**STREAM, "last-event-id": str(first)}) as answer:
        assert next(events(answer))["id"] == second


def test_of_what_has_ended_all_comes_once_and_a_browser_is_told_to_ask_no_more(
    http: httpx.Client, flow: FakeFlow, id: str
) -> None:
    flow.find(id, 5)
    with http.stream("GET", f"{API}/bisections/{id}/events", headers=STREAM) as answer:
        seen = list(events(answer))
    assert [one["id"] for one in seen[:-1]] == [event.id for event in flow.events(id)]
    again = http.get(f"{API}/bisections/{id}/events", headers={**STREAM, "last-event-id": str(seen[-2]["id"])})
    assert again.status_code == 204


def test_of_no_bisection_there_is_no_stream(http: httpx.Client) -> None:
    assert http.get(f"{API}/bisections/none/events", headers=STREAM).status_code == 404


def test_a_report_that_is_known_is_not_sent_again(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    tag = http.get(f"{API}/bisections/{id}").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = http.get(f"{API}/bisections/{id}", headers={"if-none-match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    flow.look_up(id, 8)
    answer = http.get(f"{API}/bisections/{id}", headers={"if-none-match": tag})
    assert answer.status_code == 200 and answer.headers["etag"] != tag


def test_a_report_is_waited_for_until_it_changes(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    tag = http.get(f"{API}/bisections/{id}").headers["etag"]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.get, f"{API}/bisections/{id}", params={"wait": "30s"}, headers={"if-none-match": tag})
        eventually(lambda: flow.asked_what_happened > 1)
        assert not asked.done()
        flow.look_up(id, 8)
        assert asked.result().json()["state"] == "checking ends"


def test_what_has_ended_is_not_waited_for_and_a_wait_ends(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    answer = http.get(f"{API}/bisections/{id}", params={"wait": "1s"})
    assert answer.json()["state"] == "queued"
    known = {"if-none-match": answer.headers["etag"]}
    assert http.get(f"{API}/bisections/{id}", params={"wait": "1s"}, headers=known).status_code == 304
    flow.find(id, 5)
    assert http.get(f"{API}/bisections/{id}", params={"wait": "60s"}).json()["state"] == "found"
    for wait in ("61s", "-1", "1m", "x"):
        assert http.get(f"{API}/bisections/{id}", params={"wait": wait}).status_code == 422


def test_only_so_many_may_watch_and_one_caller_is_told_that_it_is_its_own_doing() -> None:
    flow = FakeFlow()
    id = flow.submit(SUBMISSION, TESTER).id
    for limits, status in ((Limits(most=1), 503), (Limits(each=1), 429)):
        with serving(create_app(flow, watching=limits)) as url, httpx.Client(base_url=url, trust_env=False) as http:
            with http.stream("GET", f"{API}/bisections/{id}/events", headers=STREAM) as answer:
                assert answer.status_code == 200
                refused = http.get(f"{API}/bisections/{id}/events", headers=STREAM)
                assert (refused.status_code, refused.json()["type"]) == (status, "/problems/too-many-watchers")
            path = f"{API}/bisections/{id}"
            eventually(lambda http=http, path=path: http.get(path, params={"wait": "1"}).status_code == 200)


def test_who_watches_in_silence_gets_signs_of_life_and_the_poller_asks_once_for_all() -> None:
    flow = FakeFlow()
    ids = [flow.submit(SUBMISSION, TESTER).id for _ in range(20)]
    with (
        serving(create_app(flow, watching=Limits(beat_s=0.1))) as url,
        httpx.Client(base_url=url, trust_env=False) as http,
        ThreadPoolExecutor(20) as pool,
    ):

        def watch(id: str) -> int:
            with http.stream("GET", f"{API}/bisections/{id}/events", headers=STREAM) as answer:
                return sum(line == ": waiting" for line in answer.iter_lines())

        waiting = [pool.submit(watch, id) for id in ids]
        eventually(lambda: flow.asked_what_happened >= 4)
        assert flow.asked_what_happened < len(ids)
        for id in ids:
            flow.end(id, BisectionState.CANCELLED)
        assert all(each.result() > 0 for each in waiting)
