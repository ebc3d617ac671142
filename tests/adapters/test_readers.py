"""Each ready-made reader finds what docs/metrics.md says it finds, by the code that workers find numbers by."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console

from service.adapters.readers import load
from service.adapters.recipes import load as recipes
from service.application.metrics import metrics
from service.application.ports import Policy
from service.application.submission import MetricForm, Submission
from service.application.submit import complete
from service.cli import asked
from service.domain.bisection import Request
from service.domain.errors import BadRequest
from service.domain.metric import Metric
from service.domain.readers import Reader
from service.domain.recipe import SandboxKind
from service.doors.api import render
from service.doors.api.bodies import submission
from service.doors.api.document import parse
from worker.observe import number_of

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
READERS = load()
PLAIN = Submission(good=("v1",), bad="main", repo="https://git.example.org/x.git", script="bench")
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
#: Of a metric that the reader does not know the better way of.
SAID = "higher"


@dataclass(frozen=True)
class Row:
    """Of a reader's table. `better`: empty where the request has to say it."""

    reader: str
    name: str
    better: str
    here: str


def section(reader: str) -> str:
    return PAGE.partition(f"\n### {reader}\n")[2].partition("\n### ")[0]


def printed(reader: str) -> str:
    found = re.search(r"```(?:text|json)\n(.*?)```", section(reader), re.DOTALL)
    assert found is not None, reader
    return found[1]


def rows(reader: str) -> list[Row]:
    cells = re.findall(r"^\| `([^`]+)`.*? \| (higher|lower|to be said) \| (.+?) \|$", section(reader), re.MULTILINE)
    return [Row(reader, name, better if better != "to be said" else "", here) for name, better, here in cells]


def resolved(reader: str, name: str, better: str | None = None) -> Metric:
    form = MetricForm(better, reader=reader, name=name)
    return metrics(replace(PLAIN, metrics=(form,)), READERS)[0]


ROWS = [row for reader in READERS for row in rows(reader.name)]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.reader}: {row.name}" for row in ROWS])
def test_each_number_of_the_page_is_found_in_the_example_beside_it(row: Row) -> None:
    metric = resolved(row.reader, row.name, None if row.better else SAID)
    around = f"loading…\r\n{printed(row.reader)}all done\n"
    found = number_of(around.encode(), metric)
    value, _, unit = row.here.partition(" ")
    assert found.value == pytest.approx(float(value), rel=1e-5), found.problem
    assert (found.unit, metric.better) == (unit, row.better or SAID)


@pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])
def test_every_number_of_a_reader_is_on_the_page(reader: Reader) -> None:
    told = set()
    for row in rows(reader.name):
        told.add(next(place for place, number in enumerate(reader.numbers) if number.named(row.name)))
    assert told == set(range(len(reader.numbers)))


def request(written: str) -> Request:
    """Of a snippet, where it leaves out what all have."""
    whole = written if "repo:" in written else f"repo: {PLAIN.repo}\ngood: v1\nbad: v2\n{written}"
    if "check:" in whole and "serve:" not in whole:
        whole += "serve: {command: serve}\n"
    return complete(submission(parse(whole.encode(), "application/yaml")), recipes(), POLICY, (), READERS)


@pytest.mark.parametrize("written", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_every_request_of_the_page_is_taken(written: str) -> None:
    assert request(written).metric is not None


def test_every_reader_has_a_request_on_the_page() -> None:
    for reader in READERS:
        (written,) = re.findall(r"```yaml\n(.*?)```", section(reader.name), re.DOTALL)
        metric = request(written).metric
        assert metric is not None and metric.reader == reader.name


def test_what_a_dry_run_shows_is_what_the_page_shows() -> None:
    written, shown = re.findall(r"```(?:yaml|console)\n(.*?)```", PAGE, re.DOTALL)[:2]
    out = io.StringIO()
    asked.would_run(Console(file=out, width=10_000), render.request(request(written)))
    assert shown.partition("\n")[2] == out.getvalue()


@pytest.mark.parametrize(
    ("reader", "name", "text", "value"),
    [
        ("vllm bench throughput", "tokens_per_second", "Throughput: 3.10 requests/s, 1480.20 tokens/s", 1480.2),
        ("vllm bench serve", "total_token_throughput", "Total token throughput (tok/s):          900.50", 900.5),
        ("sglang.bench_serving", "mean_itl_ms", "Mean ITL (ms):                           7.5", 7.5),
        ("lm-eval", "gsm8k/acc", '{"results": {"gsm8k": {"acc": 0.5, "acc_stderr": 0.01}}}', 0.5),
        ("lm-eval table", "piqa/acc_norm,none", "|piqa |Yaml   |none  |     0|acc     |0.7|±  |0.0|\n"
         "|     |       |none  |     0|acc_norm|0.8|±  |0.0|", 0.8),
        ("lm-eval table", "mmlu_law/acc,none", "|mmlu    |  2|none|   |acc|↑  |0.6|\n"
         "| - mmlu_law|  1|none|  0|acc|↑  |0.4|", 0.4),
        ("llama-bench -o json", "tg128", '[{"n_prompt": 0, "n_gen": 128, "avg_ts": 31.5}]', 31.5),
    ],
)  # fmt: skip
def test_other_versions_of_a_tool_are_read_too(reader: str, name: str, text: str, value: float) -> None:
    found = number_of(f"{text}\n".encode(), resolved(reader, name))
    assert found.value == value, found.problem


def test_a_tool_that_changes_its_unit_is_noticed() -> None:
    metric = resolved("vllm bench serve", "mean_ttft_ms")
    assert number_of(b"Mean TTFT (ms):       48.20\n", metric).unit == "ms"
    assert number_of(b"Mean TTFT (s):       0.0482\n", metric).unit == "s"


def test_a_number_is_not_taken_for_another_whose_name_it_ends_with() -> None:
    peak = b"Peak output token throughput (tok/s):    1204.00\n"
    assert number_of(peak, resolved("vllm bench serve", "output_throughput")).value is None
    rows = "| m | pp512 @ d4096 | 10.0 ± 0.1 |\n| m | pp5120 | 20.0 ± 0.1 |\n".encode()
    assert number_of(rows, resolved("llama-bench", "pp512")).value is None


def test_several_commands_are_told_apart_by_their_text() -> None:
    both = {"results": [{"command": "./parse a", "mean": 1.0}, {"command": "./parse b", "mean": 2.0}]}
    text = json.dumps(both).encode()
    assert number_of(text, resolved("hyperfine", "./parse b.mean")).value == 2.0
    assert "2 different ones" in number_of(text, resolved("hyperfine", "mean")).problem


names = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.sampled_from("\"'\\[]{}$|`. "), min_size=1, max_size=20
)


@settings(deadline=None, max_examples=200)
@given(names.filter(lambda name: name == name.strip()), names)
def test_any_name_of_a_benchmark_finds_that_benchmark_alone(name: str, other: str) -> None:
    assume(name != other)
    kept = [{"name": name, "stats": {"median": 1.0}}, {"name": other, "stats": {"median": 2.0}}]
    try:
        metric = resolved("pytest-benchmark", f"{name}.median")
    except BadRequest as error:
        assert error.field == "metric.name"
        return
    found = number_of(json.dumps({"benchmarks": kept}).encode(), metric)
    assert found.value == 1.0, (metric.json_path, found.problem)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(READERS), st.text(max_size=30))
def test_any_name_is_a_number_of_the_reader_or_refused(reader: Reader, name: str) -> None:
    try:
        metric = resolved(reader.name, name, SAID)
    except BadRequest as error:
        assert error.field == "metric.name"
        return
    assert "cannot be used" not in number_of(b"x 1\n", metric).problem
