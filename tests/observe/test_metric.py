"""Numbers out of what a check printed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.observe import Samples, samples


@dataclass(frozen=True)
class Metric:
    pattern: str | None = None
    json_path: str | None = None


def by(pattern: str, text: str) -> Samples:
    return samples(text.encode(), Metric(pattern=pattern))


def at(path: str, text: str) -> Samples:
    return samples(text.encode(), Metric(json_path=path))


BENCH = """
============ Serving Benchmark Result ============
Successful requests:                     10
Benchmark duration (s):                  5.78
Output token throughput (tok/s):         1,234.56
Mean TTFT (ms):                          1.2e+02
==================================================
"""


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"Output token throughput \(tok/s\): +([0-9.,]+)", 1234.56),
        (r"Mean TTFT \(ms\): +(\S+)", 120.0),
        (r"Successful requests: +(?P<n>\d+)", 10.0),
        (r"(?:duration|time) \(s\):\s+(\S+)", 5.78),
        (r"^Successful requests:\s+(\S+)$", 10.0),
    ],
)
def test_the_first_group_is_the_number(pattern: str, value: float) -> None:
    assert by(pattern, BENCH) == Samples((value,))


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("5", 5.0), ("-5", -5.0), ("+5.5", 5.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1.5E-3", 0.0015),
        ("1,234", 1234.0), ("12,345,678.9", 12345678.9), ("1_000", 1000.0), ("0", 0.0),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_and_tools_write_them(said: str, value: float) -> None:
    assert by(r"v=(\S+)", f"v={said}\n") == Samples((value,))
    assert at("$.v", json.dumps({"v": said})) == Samples((value,))


def test_without_a_group_the_whole_match_is_the_number() -> None:
    assert by(r"\d+\.\d+", "took 3.25 s") == Samples((3.25,))


def test_the_last_of_several_matches_counts_and_their_number_is_told() -> None:
    assert by(r"loss (\S+)", "loss 3\nloss 2\nloss 1\n") == Samples((1.0,), "3 matches, of which the last counts")


@pytest.mark.parametrize("said", ["nan", "NaN", "inf", "-inf", "Infinity"])
def test_what_is_not_finite_is_no_sample(said: str) -> None:
    found = by(r"v=(\S+)", f"v={said}\n")
    assert found.values == () and said in found.problem and "finite" in found.problem


@pytest.mark.parametrize("said", ["12ms", "1.234,5", "fast", "1,23", "-", "0x10", "1e", "1.2.3"])
def test_what_is_no_number_is_told(said: str) -> None:
    found = by(r"v=(\S+)", f"v={said}\n")
    assert found.values == () and repr(said) in found.problem


def test_a_pattern_that_matches_nothing_is_told() -> None:
    assert by("throughput: (\\S+)", BENCH).problem == "the pattern 'throughput: (\\\\S+)' matches nothing in the output"


@pytest.mark.parametrize("pattern", ["(", "a**", r"(?<=x)\d", r"(a)\1", "x{2000}"])
def test_a_pattern_that_cannot_be_used_is_told(pattern: str) -> None:
    found = by(pattern, BENCH)
    assert found.values == () and "cannot be used" in found.problem and "(?m)" not in found.problem


def test_an_optional_group_that_took_no_part_is_passed_over() -> None:
    assert by(r"x(\d)?", "x1 x") == Samples((1.0,))


def test_a_pattern_that_would_run_for_ever_elsewhere_comes_to_its_end() -> None:
    assert by(r"(a+)+$", "a" * 200_000 + "b").problem.endswith("matches nothing in the output")
    assert by(r"(?:x|x|x?)*y(\d)", "x" * 200_000 + "y7") == Samples((7.0,))


def test_our_time_stamps_colours_and_other_line_ends_are_aside() -> None:
    text = "2026-11-30T12:00:00.000Z \x1b[32mv=7\x1b[0m\r\n2026-11-30T12:00:00.001Z done\r\n"
    assert by(r"^v=(\d+)$", text) == Samples((7.0,))


DOCUMENT = {"results": [{"name": "a", "v": 1.5}, {"name": "b {not a start}", "v": 2}], "n": {"p99": 12.5}, "ok": True}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.n.p99", 12.5),
        ("n.p99", 12.5),
        ("$.results[0].v", 1.5),
        ("$.results[?(@.name=='a')].v", 1.5),
        ("$..p99", 12.5),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "around", ["{}", 'loading [3] {{x}}\n{{"n": {{"p99": 1}}}}\n{}\nbye: [1, 2] {{z}}\n', "\n  {}\n"]
)
def test_a_path_leads_into_the_last_document(path: str, value: float, indent: int | None, around: str) -> None:
    assert at(path, around.format(json.dumps(DOCUMENT, indent=indent))) == Samples((value,))


def test_a_document_may_stand_behind_words_when_no_line_begins_with_one() -> None:
    assert at("$.v", 'first: {"v": 1}\nresult: {"v": 2}\n') == Samples((2.0,))


def test_a_list_is_a_document_too() -> None:
    assert at("$[1].v", '[{"v": 1}, {"v": 2}]\n') == Samples((2.0,))


def test_the_last_of_several_values_counts() -> None:
    assert at("$.results[*].v", json.dumps(DOCUMENT)) == Samples((2.0,), "2 values, of which the last counts")


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("$.v", "no braces here", "no JSON document was printed"),
        ("$.v", '{"v": 1', "no JSON document was printed"),
        ("$.v", '{"w": 1}', "finds nothing"),
        ("$.v", '{"v": true}', "is no number"),
        ("$.v", '{"v": null}', "is no number"),
        ("$.v", '{"v": [1]}', "is no number"),
        ("$.v", '{"v": NaN}', "not a finite number"),
        ("$.v", '{"v": -Infinity}', "not a finite number"),
        ("$.v", '{"v": 1e999}', "not a finite number"),
        ("$.v", '{"v": ' + "9" * 400 + "}", "not a finite number"),
        ("$.v", '{"v": ' + "9" * 5000 + "}", "no JSON document"),
        ("$[", "{}", "is no JSONPath"),
        ("", "{}", "is no JSONPath"),
        ("$..*..*..*", "{}", "may take for ever"),
        ("$[?(@.v =~ '(a+)+$')]", "{}", "may take for ever"),
        ("$.v * $.n", '{"v": "xx", "n": 3}', "may take for ever"),
        ("$.v[?(@.a * 2 > 1)]", '{"v": [{"a": 1}]}', "may take for ever"),
        ("a & b", '{"a": 1, "b": 2}', "fails on the last JSON document: NotImplementedError"),
        ("$.v.*.`sorted`", '{"v": [1, 2]}', "the last JSON document"),
        ("`parent`", "{}", "may take for ever"),
        ("$[*]" + ".`parent`[*]" * 20, json.dumps([0] * 1000), "may take for ever"),
        ("$[*]" + ".$[*]" * 20, json.dumps([0] * 1000), "may take for ever"),
        ("$" + "[0,-1]" * 90, "[" * 90 + "1" + "]" * 90, "may take for ever"),
        ("$.v" + ".(`this` + `this`)" * 50, '{"v": "x"}', "may take for ever"),
        ("a[/a]", '{"a": {"a": 1}}', "fails on the last JSON document: 'DatumInContext'"),
        ("$" + ".a" * 3000, "{}", "is no JSONPath"),
    ],
)
def test_why_there_is_no_number_is_told(path: str, text: str, problem: str) -> None:
    found = at(path, text)
    assert found.values == () and problem in found.problem


def test_a_path_finds_nothing_twice_however_many_steps_it_has() -> None:
    nested: object = list(range(6))
    for _ in range(5):
        nested = [nested] * 6
    assert at("$" + "[*]" * 6, json.dumps(nested)) == Samples((5.0,), "46656 values, of which the last counts")


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 100_000, "[\n" * 100_000, "x {" * 100_000, '{"a\n' * 100_000]
)
def test_what_only_begins_like_json_is_read_in_bounded_time(text: str) -> None:
    assert at("$.v", text) == Samples(problem="no JSON document was printed")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@settings(deadline=None, max_examples=25)
@given(VALUES, st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([None, 1]), st.booleans())
def test_whatever_else_is_in_a_document_its_number_is_found(
    other: object, value: float, indent: int | None, first: bool
) -> None:
    document = {"found here": value, "other": other} if first else {"other": other, "found here": value}
    found = at("$.'found here'", f"log\n{json.dumps(document, indent=indent)}\nmore\n")
    assert found == Samples((value,))


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=300), st.sampled_from([r"(\d+)", "$", "x*", r"\S+"]))
def test_any_text_gives_at_most_one_finite_number(text: str, pattern: str) -> None:
    for found in (by(pattern, text), at("$..v", text)):
        assert len(found.values) <= 1 and all(math.isfinite(value) for value in found.values)
        assert found.values or found.problem


PARTS = ["$", "@", ".", "a", "*", "[", "]", "0", "'x'", "?(", ")", "&", "|", " where ", "`", "`parent`", "`sorted`"]
PARTS += ["`len`", "`keys`", "`str()`", "/a", "\\", "+", "-", "==", "<", "~", "!", "{", "\n", "1.5", "`filter(a)`"]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map("".join), st.sampled_from(['{"a": 1, "x": "t"}', '[1, {"a": []}]'])
)
def test_no_path_is_more_than_a_problem(path: str, text: str) -> None:
    assert len(at(path, text).problem) < 400
