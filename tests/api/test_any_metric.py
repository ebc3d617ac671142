"""Whatever is asked of a number is either taken and shown, or refused by a field that was written."""

from __future__ import annotations

import io
from typing import Any

from fastapi.exceptions import RequestValidationError
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from service.adapters import readers
from service.application.ports import Policy
from service.application.submit import complete
from service.cli import asked
from service.domain.errors import UserError
from service.domain.recipe import Recipe, SandboxKind
from service.doors.api import render
from service.doors.api.bodies import submission
from service.doors.api.problems import of_user_error, of_validation
from service.doors.api.views import Problem
from tests.api.requests import MINIMAL

READERS = readers.load()
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
RECIPES = {"python": Recipe("python")}

odd = (
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=2))
)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda number: odd if number == 11 else usual)


def some_of(keys: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={key: mostly(value) for key, value in keys.items()})


better = st.sampled_from(["higher", "lower"])
patterns = st.sampled_from(["a", "([0-9]+)", "(?P<value>a)(?P<unit>b)", "(a)(b)", "(", ""])
paths = st.sampled_from(["$.a", "$.a[0].b", "$..a..b", "$[", "$.a * 2"])
numbers = st.sampled_from(
    [
        ("hyperfine", "mean"),
        ("vllm bench serve", "Mean TTFT (ms)"),
        ("lm-eval", "a/acc,none"),
        ("lm-eval", "a/b,c"),
        ("google-benchmark", "x.real_time"),
        ("llama-bench -o csv", "pp512"),
        ("pytest-benchmark", "mean"),
        ("vllm", "mean"),
    ]
)
ways = st.one_of(
    st.fixed_dictionaries({"pattern": mostly(patterns)}),
    st.fixed_dictionaries({"json": mostly(paths)}, optional={"unit_path": mostly(paths)}),
    st.fixed_dictionaries({"csv": mostly(st.just("s"))}),
    st.fixed_dictionaries({"csv": some_of({"column": st.just("s"), "where": st.just({"a": "1"})})}),
    numbers.map(lambda number: {"reader": number[0], "name": number[1]}),
)
more = some_of(
    {
        "name": st.sampled_from(["m", "n", "o"]),
        "better": better,
        "unit": st.sampled_from(["ms", "tok/s"]),
        "threshold": st.sampled_from(["auto", "5%", 0.5, "2 %", "0", "-3%", "150%"]),
        "aggregate": st.sampled_from(["median", "last"]),
        "decides": st.just(False) | st.booleans(),
    }
)
metric = st.builds(lambda kind, extra, way: {"better": kind, **extra, **way}, better, more, ways)
odder = st.builds(lambda body, extra: {**body, **extra}, metric, st.dictionaries(st.text(max_size=6), odd) | ways)
bodies = st.fixed_dictionaries(
    {"metric": mostly(metric | odder | st.lists(mostly(metric), max_size=3))},
    optional={
        "measuring": mostly(some_of({key: st.integers(-1, 220) for key in ("warmup", "runs", "recheck")})),
        "resources": mostly(some_of({"cpuset": st.sampled_from(["0-3", "3-0", 1]), "numa": st.integers(-1, 4)})),
        "flaky": st.integers(0, 5).map(lambda number: number == 5),
    },
).map(lambda changes: {**MINIMAL, **changes})


def problem(body: dict[str, Any]) -> Problem | None:
    try:
        request = complete(submission(body), RECIPES, POLICY, (), READERS)
    except RequestValidationError as error:
        return of_validation(error.errors(), "/")
    except UserError as error:
        return of_user_error(error, "/")
    assert (request.metric is not None) == (body["metric"] is not None)
    out = io.StringIO()
    asked.would_run(Console(file=out), render.request(request))
    assert ("measured" in out.getvalue()) == (request.metric is not None)
    return None


def written(document: Any, field: str) -> bool:
    """Whether the field is there; keys may hold dots."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return any(
        field == str(key) or (field.startswith(f"{key}.") and written(value, field[len(str(key)) + 1 :]))
        for key, value in inner
    )


@settings(deadline=None, max_examples=250)
@given(bodies)
def test_any_metric_is_taken_or_refused_by_a_field_that_was_written(body: dict[str, Any]) -> None:
    told = problem(body)
    if told is None:
        return
    assert told.detail
    field = told.field.rpartition(".")[0] if told.detail.startswith(f"{told.field} is missing") else told.field
    assert written(body, field), told
