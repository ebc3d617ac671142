"""Whatever is sent, the answer is one that the OpenAPI document names."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.doors.api.bodies import SubmissionBody
from service.doors.api.parts import BudgetBody, ReadyBody, ResourcesBody, ServeBody
from tests.api.requests import MINIMAL

PATH = "/api/v1/bisections"
INNER = (*ServeBody.written(), *ReadyBody.written(), *BudgetBody.written(), *ResourcesBody.written())
KEYS = sorted({*SubmissionBody.model_fields, *INNER})
EXAMPLES = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

words = st.sampled_from(["20m", "docker", "none", "bad", "/x", "1e999", "nan", "0"])
texts = st.text(st.characters(), max_size=20) | words
numbers = st.integers() | st.floats(allow_nan=False) | st.sampled_from([10**400, -(10**30), 1e308])
leaves = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | texts, inner, max_size=4),
    max_leaves=12,
)
parts = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(st.sampled_from(body.written()), values, max_size=3)
        for name, body in (("budget", BudgetBody), ("resources", ResourcesBody))
    },
)
changes = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
almost = st.builds(lambda changes, inner: {**MINIMAL, **changes, **inner}, changes, parts)


@pytest.fixture
def documented(http: httpx.Client) -> set[int]:
    post: dict[str, Any] = http.get("/api/v1/openapi.json").json()["paths"][PATH]["post"]
    return {int(status) for status in post["responses"]} - {500}


@EXAMPLES
@given(body=values | almost)
def test_any_json_gets_a_documented_answer(http: httpx.Client, documented: set[int], body: object) -> None:
    text = json.dumps(body).encode()
    answer = http.post(PATH, content=text, headers={"content-type": "application/json"})
    assert answer.status_code in documented, answer.text
    if answer.status_code == 201:
        assert http.get(answer.headers["location"]).status_code == 200
        assert http.get(PATH).status_code == 200


@EXAMPLES
@given(body=almost)
def test_any_yaml_gets_a_documented_answer(http: httpx.Client, documented: set[int], body: object) -> None:
    text = json.dumps(body).encode()
    answer = http.post(PATH, content=text, headers={"content-type": "application/yaml"})
    assert answer.status_code in documented, answer.text


@EXAMPLES
@given(body=st.binary(max_size=200), media_type=st.sampled_from(["application/json", "application/yaml"]))
def test_any_bytes_get_a_documented_answer(
    http: httpx.Client, documented: set[int], body: bytes, media_type: str
) -> None:
    answer = http.post(PATH, content=body, headers={"content-type": media_type})
    assert answer.status_code in documented, answer.text


@EXAMPLES
@given(id=st.text(min_size=1, max_size=40), number=st.integers())
def test_any_id_gets_an_answer_that_is_no_failure(http: httpx.Client, id: str, number: int) -> None:
    quoted = quote(id, safe="")
    for path in (f"{PATH}/{quoted}", f"/api/v1/probes/{quoted}/log", f"{PATH}/{quoted}/probes/{number}/log"):
        assert http.get(path, follow_redirects=True).status_code in (200, 404, 405, 422)
