"""Following a log through a real HTTP server: each piece comes when it is there, and the end when it is the end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from firstbad import Client
from service.application.ports import QueueUnavailable
from service.domain.bisection import Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, BuildState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow
from tests.waiting import eventually

API = "/api/v1"


@pytest.fixture
def running(flow: FakeFlow) -> Probe:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    return flow.plan(id, 8)


@pytest.fixture
def client(http: httpx.Client) -> Iterator[Client]:
    with Client(str(http.base_url)) as made:
        yield made


def test_each_piece_comes_while_the_probe_runs(client: Client, flow: FakeFlow, running: Probe) -> None:
    pipe = flow.live.pipe("probe", running.id)
    pieces = client.log(running.id, follow=True)
    for text in (b"one\n", b"no end", b"\xff\x00\n"):
        pipe.put(text)
        assert next(pieces) == text
    flow.judge(running, Verdict.BAD, "it failed")
    assert list(pieces) == []


@pytest.mark.parametrize("path", ["/probes/{0.id}/log", "/bisections/{0.bisection_id}/probes/{0.number}/log"])
def test_it_is_plain_text_by_either_path(http: httpx.Client, flow: FakeFlow, running: Probe, path: str) -> None:
    flow.live.pipe("probe", running.id).put(b"one\n")
    with http.stream("GET", API + path.format(running), params={"follow": "true"}) as answer:
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert next(answer.iter_bytes()) == b"one\n"


def test_a_build_is_followed_by_its_key(client: Client, flow: FakeFlow, running: Probe) -> None:
    build = flow.build(running, BuildState.RUNNING, None, attempt=1)
    pipe = flow.live.pipe("build", build.key)
    pieces = client.build_log(build.key, follow=True)
    pipe.put(b"compiling\n")
    assert next(pieces) == b"compiling\n"
    flow.build(running, BuildState.BUILT, attempt=1)
    assert list(pieces) == []


def test_what_has_ended_comes_whole_and_what_is_not_there_is_a_problem(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    assert http.get(f"{API}/probes/{id}.4/log?follow=true").content == b"one\ntwo\n"
    assert http.get(f"{API}/probes/{id}.9/log?follow=true").status_code == 404
    assert http.get(f"{API}/builds/none/log?follow=true").status_code == 404
    assert http.get(f"{API}/probes/{id}.4/log?follow=perhaps").status_code == 422


def test_who_goes_away_is_seen_to_be_gone_while_the_run_is_silent(
    client: Client, flow: FakeFlow, running: Probe
) -> None:
    pipe = flow.live.pipe("probe", running.id)
    pieces = client.log(running.id, follow=True)
    pipe.put(b"one\n")
    assert next(pieces) == b"one\n"
    pieces.close()
    eventually(lambda: flow.live.closed == [("probe", running.id, 1)])


def test_a_hundred_who_wait_keep_nobody_else_waiting(http: httpx.Client, flow: FakeFlow, running: Probe) -> None:
    url, pipe = f"{http.base_url}{API}/probes/{running.id}/log?follow=true", flow.live.pipe("probe", running.id)
    limits = httpx.Limits(max_connections=200)
    with httpx.Client(trust_env=False, timeout=60, limits=limits) as many, ThreadPoolExecutor(100) as pool:
        waiting = [pool.submit(many.get, url) for _ in range(100)]
        eventually(lambda: pipe.empty() and http.get(f"{API}/probes/{running.id}").is_success)
        assert all(http.get(f"{API}/bisections/{running.bisection_id}").is_success for _ in range(20))
        flow.end(running.bisection_id, BisectionState.CANCELLED)
        assert {each.result().status_code for each in waiting} == {200}


def test_a_broker_that_goes_away_is_told_and_the_answer_breaks_off(
    client: Client, flow: FakeFlow, running: Probe
) -> None:
    def away() -> None:
        raise QueueUnavailable("the broker is away: gone")

    flow.live.writes["probe", running.id, 1] = [b"one\n", away]
    pieces, seen = client.log(running.id, follow=True), b""
    with pytest.raises(Exception, match="the connection to .* broke"):
        for piece in pieces:
            seen += piece
    assert seen == b"one\n\n[firstbad: the broker is away: gone]\n"
