"""Parts of stored logs, by their bytes."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import zstandard
from fastapi import FastAPI, Response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters import compressed
from service.adapters.artifacts import Artifacts
from service.application.queries import LogStream
from service.domain.evidence import Verdict
from service.domain.lifecycle import BuildState
from service.doors.api.logs import sent_log
from service.doors.api.ranges import AskedRange
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

#: Of several pieces, with characters that a cut may go through.
WHOLE = "".join(f"line {number} é\n" for number in range(1000)).encode()
SIZE = len(WHOLE)


@pytest.fixture
def paths(flow: FakeFlow) -> list[str]:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    probe = flow.judge(flow.plan(id, 8), Verdict.BAD, "failed")
    build = flow.build(probe, BuildState.FAILED)
    for path in list(flow.logs):
        flow.logs[path] = WHOLE
    return [
        f"/api/v1/probes/{probe.id}/log",
        f"/api/v1/bisections/{id}/probes/{probe.number}/log",
        f"/api/v1/builds/{build.key}/log",
    ]


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=5-4999", 5, 4999),
        ("bytes=4096-8191", 4096, 8191),
        ("BYTES= 9000-", 9000, SIZE - 1),
        (f"bytes={SIZE - 1}-{SIZE * 9}", SIZE - 1, SIZE - 1),
        ("bytes=-7", SIZE - 7, SIZE - 1),
        ("bytes=-999999", 0, SIZE - 1),
    ],
)
def test_a_part_comes_with_its_place(http: httpx.Client, paths: list[str], asked: str, first: int, last: int) -> None:
    for path in paths:
        answer = http.get(path, headers={"Range": asked})
        assert (answer.status_code, answer.headers["content-range"]) == (206, f"bytes {first}-{last}/{SIZE}")
        assert answer.content == WHOLE[first : last + 1]
        assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", f"bytes={SIZE}-{SIZE + 5}", "bytes=-0"])
def test_bytes_that_are_not_there_are_refused_with_how_many_there_are(
    http: httpx.Client, paths: list[str], asked: str
) -> None:
    for path in paths:
        answer = http.get(path, headers={"Range": asked})
        assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{SIZE}")
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.json()["type"], answer.json()["instance"]) == ("/problems/no-such-range", path)


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,5-6", "bytes=5-4", "bytes=-", "lines=0-5", "bytes=a-b", "bytes=0-" + "9" * 99]
)
def test_what_is_asked_for_in_another_way_is_sent_whole(http: httpx.Client, paths: list[str], asked: str) -> None:
    answer = http.get(paths[0], headers={"Range": asked})
    assert (answer.status_code, answer.content, answer.headers["accept-ranges"]) == (200, WHOLE, "bytes")


def test_a_log_that_must_be_as_it_was_or_is_followed_is_sent_whole(http: httpx.Client, paths: list[str]) -> None:
    for path in paths:
        for query, headers in (("", {"If-Range": '"x"'}), ("?follow=true", {})):
            answer = http.get(path + query, headers={"Range": "bytes=0-4", **headers})
            assert (answer.status_code, answer.content) == (200, WHOLE)


def test_a_part_of_a_log_that_is_gone_is_a_problem(http: httpx.Client, flow: FakeFlow, paths: list[str]) -> None:
    flow.logs.clear()
    assert http.get(paths[0], headers={"Range": "bytes=0-4"}).status_code == 404


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, SIZE - 1), max_size=4, unique=True).map(sorted))
def test_the_parts_together_are_the_whole(http: httpx.Client, paths: list[str], cuts: list[int]) -> None:
    edges = [0, *cuts, SIZE]
    asked = [f"bytes={first}-{after - 1}" for first, after in zip(edges, edges[1:], strict=False)]
    assert b"".join(http.get(paths[0], headers={"Range": one}).content for one in asked) == WHOLE


def test_a_part_of_what_is_kept_compressed_is_of_what_it_was_before(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    kept = tmp_path / "logs" / f"1.log{compressed.ENDING}"
    kept.write_bytes(zstandard.compress(WHOLE))
    store = Artifacts(str(tmp_path))
    app = FastAPI()

    @app.get("/log")
    def log(part: AskedRange) -> Response:
        path = f"logs/{kept.name}"
        return sent_log(lambda: LogStream(path, store.read(path), 3), part)

    with serving(app) as url:
        answer = httpx.get(f"{url}/log", headers={"Range": "bytes=-5000"}, trust_env=False)
    assert (answer.status_code, answer.content) == (206, WHOLE[-5000:])
    assert answer.headers["content-range"] == f"bytes {SIZE - 5000}-{SIZE - 1}/{SIZE}"
