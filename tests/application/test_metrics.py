"""How a user may ask for a number, and what is said when that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters import servers
from service.adapters.readers import load
from service.adapters.recipes import load as recipes
from service.application.ports import Policy
from service.application.submission import ControlForm, CsvForm, MeasuringForm, MetricForm, ServeForm, Submission
from service.application.submit import complete
from service.domain.bisection import Request
from service.domain.errors import BadRequest
from service.domain.metric import Aggregate, Better, Column, Measuring, Metric, Threshold
from service.domain.recipe import SandboxKind
from service.domain.threshold import threshold, told

PLAIN = Submission(good=("v1",), bad="main", repo="https://example.org/p.git", script="exit 0")
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
READERS, RECIPES = load(), recipes()
PATTERN = MetricForm("higher", r"tok/s\): +([0-9.]+)")


def asked(*forms: MetricForm, **change: object) -> Request:
    return complete(replace(PLAIN, metrics=forms, **change), RECIPES, POLICY, (), READERS)  # type: ignore[arg-type]


def refused(*forms: MetricForm, **change: object) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        asked(*forms, **change)
    assert caught.value.advice
    return caught.value


def metric(form: MetricForm) -> Metric:
    found = asked(form).metric
    assert found is not None
    return found


def test_a_number_is_found_by_a_pattern_a_path_or_a_column() -> None:
    assert metric(PATTERN) == Metric(Better.HIGHER, PATTERN.pattern)
    assert metric(MetricForm("lower", json="$.a[0].b", unit_path="$.a[0].unit")) == Metric(
        Better.LOWER, json_path="$.a[0].b", unit_path="$.a[0].unit"
    )
    column = MetricForm("lower", csv=CsvForm("seconds", {"test": "parse"}), name="parsing", unit="s", aggregate="mean")
    assert metric(column) == Metric(
        Better.LOWER, csv=Column("seconds", {"test": "parse"}), name="parsing", unit="s", aggregate=Aggregate.MEAN
    )


@pytest.mark.parametrize(
    "pattern", ["a", "(a)", "(?:a)(b)", "(?P<value>a)", "(?P<value>a)(?P<unit>b)", "(?P<unit>a)(b)"]
)
def test_a_pattern_has_one_group_for_the_number_and_may_have_one_for_the_unit(pattern: str) -> None:
    assert metric(MetricForm("higher", pattern)).pattern == pattern


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        (MetricForm("higher"), "metric", "exactly one of pattern, json, csv, reader"),
        (MetricForm("higher", "a", "$.b"), "metric.json", "exactly one"),
        (MetricForm("higher", "a", reader="hyperfine"), "metric.reader", "exactly one"),
        (MetricForm("higher", "a", csv=CsvForm("a")), "metric.csv", "exactly one"),
        (MetricForm(None, "a"), "metric.better", "missing"),
        (MetricForm("up", "a"), "metric.better", "up"),
        (MetricForm("lower", "(a)(b)"), "metric.pattern", "2 groups"),
        (MetricForm("lower", "(?P<value>a)(b)"), "metric.pattern", "2 groups"),
        (MetricForm("lower", "(?P<unit>a)"), "metric.pattern", "none for the number"),
        (MetricForm("lower", "(?P<speed>a)"), "metric.pattern", "a group 'speed'"),
        (MetricForm("lower", "(?P<unit>a)(b)(c)"), "metric.pattern", "3 groups"),
        (MetricForm("lower", "a("), "metric.pattern", "no regular expression"),
        (MetricForm("lower", "(?<=a)[0-9]+"), "metric.pattern", "no regular expression that RE2 takes"),
        (MetricForm("lower", "a" * 1001), "metric.pattern", "1000 characters"),
        (MetricForm("lower", ""), "metric.pattern", "empty"),
        (MetricForm("lower", json="$["), "metric.json", "as a JSONPath"),
        (MetricForm("lower", json="$.a.`sub(/a/,b)`"), "metric.json", "sub or split"),
        (MetricForm("lower", json="$.a" * 400), "metric.json", "1000 characters"),
        (MetricForm("lower", json="$..a..b"), "metric.json", "more than once"),
        (MetricForm("lower", json="$.a", unit_path="$["), "metric.unit_path", "as a JSONPath"),
        (MetricForm("lower", "a", unit_path="$.a"), "metric.unit_path", "no json"),
        (MetricForm("lower", csv=CsvForm(" ")), "metric.csv", "empty"),
        (MetricForm("lower", csv=CsvForm("a\nb")), "metric.csv", "several lines"),
        (MetricForm("lower", csv=CsvForm("a", {str(n): "" for n in range(11)})), "metric.csv.where", "11 columns"),
        (MetricForm("lower", csv=CsvForm("a", {"b": "\0"})), "metric.csv.where.b", "NUL"),
        (MetricForm("lower", "a", name="a" * 201), "metric.name", "201 characters"),
        (MetricForm("lower", "a", name=" "), "metric.name", "empty"),
        (MetricForm("lower", "a", unit="t" * 41), "metric.unit", "41 characters"),
        (MetricForm("lower", "a", aggregate="mode"), "metric.aggregate", "'mode' is unknown"),
        (MetricForm("lower", "a", threshold="much"), "metric.threshold", "'much'"),
        (MetricForm(reader="vllm bench", name="x"), "metric.reader", "no reader 'vllm bench'"),
        (MetricForm(reader="hyperfine"), "metric.name", "missing"),
        (MetricForm(reader="hyperfine", name="average"), "metric.name", "no number 'average'"),
        (MetricForm(reader="hyperfine", name="a..b..c.mean"), "metric.name", ".. more than once"),
        (MetricForm(reader="lm-eval", name="task/own_metric,none"), "metric.better", "of both kinds"),
    ],
)
def test_each_mistake_is_named_with_its_field(form: MetricForm, field: str, said: str) -> None:
    error = refused(form)
    assert error.field == field
    assert said in error.detail


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"hang": "bad"}, "hang", "beside metric"),
        ({"failure": "x"}, "failure", "beside metric"),
        ({"flaky": True}, "flaky", "beside metric"),
        ({"control": ControlForm(script="x")}, "control", "beside metric"),
        ({"script": None, "failure_in": "build"}, "metric", "nothing is run"),
    ],
)
def test_what_has_no_meaning_beside_a_number_is_refused(change: dict[str, object], field: str, said: str) -> None:
    error = refused(PATTERN, **change)
    assert error.field == field
    assert said in error.detail
    assert asked(PATTERN, hang="skip").metric is not None


def test_who_errs_in_a_reader_or_its_number_is_told_which_there_are() -> None:
    advice = refused(MetricForm(reader="vllm_bench_serv", name="x")).advice
    assert advice.startswith("did you mean 'vllm bench serve'? Known are: vllm bench serve, ")
    assert refused(MetricForm(reader="what?", name="x")).advice.startswith("known are: vllm bench serve, ")
    assert "p{p}_ttft_ms" in refused(MetricForm(reader="vllm bench serve", name="ttft")).advice


def test_a_reader_fills_in_what_is_known_of_its_number() -> None:
    mean = metric(MetricForm(reader="vllm bench serve", name="mean_ttft_ms"))
    assert (mean.name, mean.better, mean.unit, mean.reader) == ("mean_ttft_ms", Better.LOWER, "ms", "vllm bench serve")
    assert mean.pattern is not None and r"Mean\ TTFT" in mean.pattern
    assert metric(MetricForm(reader="VLLM-bench_serve", name="Mean TTFT (ms)")) == mean
    assert metric(MetricForm(reader="google benchmark", name="BM_x.real_time")).aggregate is Aggregate.MEDIAN


def test_what_the_request_says_goes_before_what_the_reader_knows() -> None:
    form = MetricForm("higher", reader="hyperfine", name="mean", unit="seconds", aggregate="max", threshold="5%")
    found = metric(form)
    assert (found.better, found.unit, found.aggregate) == (Better.HIGHER, "seconds", Aggregate.MAX)
    assert found.threshold == Threshold(0.05)


def two(**of_the_second: object) -> tuple[MetricForm, MetricForm]:
    first = MetricForm("higher", "a", at="metric.0")
    return first, replace(MetricForm("lower", "b", name="other", at="metric.1"), **of_the_second)  # type: ignore[arg-type]


def test_of_several_metrics_the_first_decides_or_the_one_that_says_so() -> None:
    assert [each.name for each in (asked(*two()).metric, *asked(*two()).other_metrics) if each] == ["metric", "other"]
    turned = asked(*two(decides=True))
    assert turned.metric is not None and turned.metric.name == "other"
    assert [each.name for each in turned.other_metrics] == ["metric"]


@pytest.mark.parametrize(
    ("forms", "field", "said"),
    [
        (two(name=None), "metric.1", "two metrics are called 'metric'"),
        (two(name="metric"), "metric.1.name", "two metrics"),
        (two(better=None), "metric.1.better", "missing"),
        (two(pattern="("), "metric.1.pattern", "no regular"),
        ([replace(form, decides=True) for form in two()], "metric.1.decides", "2 metrics are to decide"),
        ([replace(two()[1], name=f"m{n}") for n in range(21)], "metric", "21 metrics"),
    ],
)
def test_a_mistake_in_one_of_several_is_told_by_its_place(forms: list[MetricForm], field: str, said: str) -> None:
    error = refused(*forms)
    assert error.field == field
    assert said in error.detail


@pytest.mark.parametrize(
    ("written", "better", "found"),
    [
        ("auto", Better.HIGHER, None),
        (" Auto ", Better.LOWER, None),
        ("5%", Better.HIGHER, Threshold(0.05)),
        ("99.5 %", Better.HIGHER, Threshold(0.995)),
        ("150%", Better.LOWER, Threshold(1.5)),
        ("0.5", Better.HIGHER, Threshold(0.5, relative=False)),
        ("2e3", Better.LOWER, Threshold(2000.0, relative=False)),
    ],
)
def test_thresholds(written: str, better: Better, found: Threshold | None) -> None:
    assert threshold(written, better, field="x") == found


@pytest.mark.parametrize("written", ["0", "0%", "-1", "-5%", "100%", "250 %", "nan", "inf", "5 ms", "1e999", "%", ""])
def test_what_is_no_threshold_is_quoted(written: str) -> None:
    with pytest.raises(BadRequest) as caught:
        threshold(written, Better.HIGHER, field="metric.threshold")
    assert (caught.value.field, caught.value.value) == ("metric.threshold", written)


@given(st.text(max_size=12), st.sampled_from(Better))
def test_any_text_is_a_threshold_of_more_than_nothing_or_refused(written: str, better: Better) -> None:
    try:
        found = threshold(written, better, field="x")
    except BadRequest:
        return
    assert found is None or 0 < found.value < float("inf")


def test_thresholds_are_told_in_the_unit() -> None:
    assert [told(each, "ms") for each in (None, Threshold(0.05), Threshold(0.5, relative=False))] == [
        "auto",
        "5 %",
        "0.5 ms",
    ]


def test_a_server_is_warmed_up_once_and_a_script_is_not() -> None:
    assert asked(PATTERN).measuring == Measuring(0, 30, 8)
    assert asked(PATTERN, script=None, serve=ServeForm("serve")).measuring == Measuring(1, 30, 8)
    cold = asked(PATTERN, script=None, serve=ServeForm("serve"), measuring=MeasuringForm(0, 50, 0))
    assert cold.measuring == Measuring(0, 50, 0)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (MeasuringForm(warmup=-1), "measuring.warmup"),
        (MeasuringForm(warmup=11), "measuring.warmup"),
        (MeasuringForm(runs=3), "measuring.runs"),
        (MeasuringForm(runs=201), "measuring.runs"),
        (MeasuringForm(recheck=1), "measuring.recheck"),
        (MeasuringForm(recheck=101), "measuring.recheck"),
        (MeasuringForm(recheck=-(10**400)), "measuring.recheck"),
    ],
)
def test_how_often_a_number_is_measured_has_bounds(form: MeasuringForm, field: str) -> None:
    assert refused(PATTERN, measuring=form).field == field


def test_nothing_is_measured_without_a_metric() -> None:
    error = refused(measuring=MeasuringForm(runs=10))
    assert (error.field, error.detail) == ("measuring", "measuring is given, but nothing is measured")


def test_a_server_that_was_taken_out_of_a_pasted_script_is_warmed_up_too() -> None:
    bench = MetricForm(reader="vllm bench serve", name="output_throughput")
    pasted = replace(PLAIN, metrics=(bench,), script="vllm serve m &\nsleep 60\nvllm bench serve\n")
    assert complete(pasted, RECIPES, POLICY, servers.load(), READERS).measuring.warmup == 1
    assert complete(replace(pasted, pasted=False), RECIPES, POLICY, servers.load(), READERS).measuring.warmup == 0
