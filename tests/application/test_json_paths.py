"""The service takes the JSONPaths that workers take, and no others."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.application.metrics import metrics
from service.application.submission import MetricForm
from service.domain.errors import BadRequest
from service.domain.metric import Aggregate, Better, Metric
from tests.application.test_submit import PLAIN
from worker.observe import number_of

PRINTED = json.dumps({"v": 1.5, "a": {"v": 1.5}, "list": [{"v": 1.5, "name": "x"}]}).encode()


def asked(path: str) -> Metric:
    return Metric(Better.HIGHER, json_path=path, aggregate=Aggregate.LAST)


def service_takes(path: str) -> bool:
    try:
        metrics(replace(PLAIN, metrics=(MetricForm("higher", json=path),)), ())
    except BadRequest:
        return False
    return True


@pytest.mark.parametrize(
    "path",
    [
        "$.v",
        "v",
        "$..v",
        "$.list[?(@.v == $.v)].v",
        "$.`this`.v",
        "$.*.v",
        "$.list[0].v",
        "$.list[*].v",
        "$.list[?(@.name == 'x')].v",
        "$['v']",
        "$.v + $.a.v",
    ],
)
def test_what_both_take_finds_the_number(path: str) -> None:
    assert service_takes(path)
    assert number_of(PRINTED, asked(path)).value is not None


@pytest.mark.parametrize(
    "path",
    [
        "$[",
        "$.",
        "$.v.`unknown`",
        "$..a..v",
        "$.list[?(@.name =~ '(x+)+$')].v",
        "$.v.`sub(/a/, b)`",
        "$.v.`split(a, 0, -1)`",
        "$.v * $.a.v",
        "$.list[?(@.v * 2 > 1)].v",
        "$.list[*].`parent`[*].v",
        "$.list[*].$.list[*].v",
        "$.list[?($.list[*].v)].v",
        "$.list[0,0].v",
        "$['v','v']",
        "$.(v|v)",
        "$.v.(`this` + `this`)",
    ],
)
def test_what_one_refuses_the_other_refuses(path: str) -> None:
    assert not service_takes(path)
    assert number_of(PRINTED, asked(path)).value is None


PARTS = ["$", "@", ".", "..", "v", "a", "*", "[*]", "[0]", "[0,1]", "['v']", "['v','v']", "[?(@.v > 1)]", "(", ")", "|"]
PARTS += ["`parent`", "`this`", "`len`", "`sub(/a/, b)`", " + ", " * ", " / ", " where ", "$.v", ".v", "[?(@ =~ 'x')]"]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join))
def test_no_path_is_taken_by_one_and_refused_by_the_other(path: str) -> None:
    assume(path.strip())
    problem = number_of(PRINTED, asked(path)).problem
    assert service_takes(path) == ("is no JSONPath" not in problem and "may take for ever" not in problem), problem
