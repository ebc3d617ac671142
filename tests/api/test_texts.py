"""POST /bisections/parse: the text of an issue, in three media types."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.fakes.flow import FakeFlow

PATH = "/api/v1/bisections/parse"
TEXT = "It works in v0.9.2 but fails in 0.10.0.\n"


@pytest.mark.parametrize("kind", ["text/plain", "text/markdown; charset=utf-8"])
def test_a_text_is_read_with_where_each_value_comes_from(http: httpx.Client, flow: FakeFlow, kind: str) -> None:
    answer = http.post(PATH, content=TEXT.encode(), headers={"content-type": kind})
    assert answer.status_code == 200
    found = answer.json()
    assert found["request"] == {"good": "v0.9.2", "bad": "0.10.0"}
    good = found["fields"][0]
    assert (good["name"], good["certainty"]) == ("good", "high")
    assert good["origins"] == [{"start": 12, "end": 18, "quoted": "v0.9.2"}]
    assert [each["name"] for each in found["missing"]] == ["repo", "script"]
    assert not flow.bisections()
    assert http.post(PATH, json={"text": TEXT, "project": "python"}).json()["request"] == found["request"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"json": {"text": "x", "project": "none-such"}}, 404), ({"json": {}}, 422), ({"json": {"text": 3}}, 422),
        ({"json": {"text": "x", "more": 1}}, 422),
        ({"content": b"\xff", "headers": {"content-type": "text/plain"}}, 422),
        ({"content": b"x", "headers": {"content-type": "image/png"}}, 415),
        ({"content": b"x" * 2_000_000, "headers": {"content-type": "text/plain"}}, 413),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused(http: httpx.Client, body: dict, status: int) -> None:
    answer = http.post(PATH, **body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("text", ["", "\0\ud800 fails in 0.10.0", "\r\n", "x" * 100_000])
def test_any_text_has_an_answer(http: httpx.Client, text: str) -> None:
    headers = {"content-type": "application/json"}
    assert http.post(PATH, content=json.dumps({"text": text}), headers=headers).status_code == 200
