"""Numbers out of what a check printed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.observe.metrics import at, by, column, one
from worker.observe import Measurement

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
    assert by(pattern, BENCH) == one(value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("5", 5.0), ("-5", -5.0), ("+5.5", 5.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1.5E-3", 0.0015),
        ("1,234", 1234.0), ("12,345,678.9", 12345678.9), ("1_000", 1000.0), ("0", 0.0),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_and_tools_write_them(said: str, value: float) -> None:
    assert by(r"v=(\S+)", f"v={said}\n") == one(value)
    assert at("$.v", json.dumps({"v": said})) == one(value)


def test_without_a_group_the_whole_match_is_the_number() -> None:
    assert by(r"\d+\.\d+", "took 3.25 s") == one(3.25)


LOSSES = "".join(f"loss {n}\n" for n in (3, 2, 4, 2, 1.5))


@pytest.mark.parametrize(
    ("aggregate", "value"), [("median", 2.0), ("mean", 2.5), ("min", 1.5), ("max", 4.0), ("last", 1.5)]
)
def test_of_several_numbers_one_is_made_as_asked(aggregate: str, value: float) -> None:
    found = by(r"loss (\S+)", LOSSES, aggregate=aggregate)
    assert (found.value, found.problem) == (value, "")
    assert found.found == 5


def test_several_different_numbers_are_none_and_what_to_do_is_told() -> None:
    assert by(r"loss (\S+)", LOSSES) == Measurement(
        problem="5 numbers were found, 4 different ones (3, 2, 4, …): "
        "add `aggregate: median` (or mean, min, max, last), or make the pattern narrower"
    )
    assert by(r"loss (\S+)", "loss 2\nloss 2.0\n") == Measurement(2.0, "", 2)


@pytest.mark.parametrize("aggregate", ["median", "mean", "min", "max"])
def test_one_that_is_no_number_among_several_is_told(aggregate: str) -> None:
    for wrong in ("nan", "fast"):
        found = by(r"loss (\S+)", f"loss {wrong}\n{LOSSES}", aggregate=aggregate)
        assert found.value is None and repr(wrong) in found.problem
    assert by(r"loss (\S+)", f"loss nan\n{LOSSES}", aggregate="last").value == 1.5


def test_numbers_whose_mean_is_no_number_are_told() -> None:
    assert "larger than a number" in by(r"v=(\S+)", "v=1e308\nv=1.7e308\n", aggregate="mean").problem


@pytest.mark.parametrize(
    "pattern", [r"(?P<value>[\d.]+) ?(?P<unit>[a-z/]+)", r"took (?P<value>\S+?) *(?P<unit>[a-z]+)$"]
)
def test_a_pattern_may_find_the_unit_too(pattern: str) -> None:
    assert by(pattern, "took 12.5 ms\n", unit="s") == one(12.5, "ms")
    assert by(pattern, "took 12.5ms\n") == one(12.5, "ms")


def test_the_unit_is_the_printed_one_else_the_one_that_was_asked_for() -> None:
    assert by(r"(?P<value>\d+)(?P<unit> *[a-z]+)?", "12", unit="ms") == one(12.0, "ms")
    assert by(r"(?P<unit>\w+)=(\d+)", "ms=12") == one(12.0, "ms")
    assert at("$.v", '{"v": 1, "u": "GB/s"}', unit_path="$.u", unit="MB/s") == one(1.0, "GB/s")
    assert at("$.v", '{"v": 1}', unit_path="$.u", unit="MB/s") == one(1.0, "MB/s")


def test_a_long_unit_is_cut_when_it_was_printed_and_not_when_it_was_asked_for() -> None:
    long = "requests per second and per card"
    assert by(r"\d+", "12", unit=long) == one(12.0, long)
    assert by(r"(\d+) (?P<unit>.*)", f"12 {long}", unit=long) == one(12.0, long[:30])


def test_numbers_in_several_units_are_none() -> None:
    text = "took 900 ms\ntook 1 s\n"
    found = by(r"took (?P<value>\S+) (?P<unit>\S+)", text, aggregate="max")
    assert "several units ('ms', 's')" in found.problem
    assert by(r"took (?P<value>\S+) (?P<unit>\S+)", text, aggregate="last").unit == "s"
    items = json.dumps([{"v": 1, "u": "s"}, {"v": 1, "u": "ms"}])
    assert "several units" in at("$[*].v", items, unit_path="$[*].u", aggregate="max").problem
    assert at("$[*].v", json.dumps([{"v": 1}, {"v": 1, "u": "s"}]), unit_path="$[1].u") == Measurement(1.0, "s", 2)
    assert "of the unit" in at("$[0].v", items, unit_path="$[*].u").problem


def test_a_number_with_its_unit_is_none_and_how_to_get_both_is_told() -> None:
    assert "(?P<unit>[a-z]+)" in by(r"v=(.*)", "v=12.5 ms\n").problem
    assert "(?P<unit>[a-z]+)" not in by(r"v=(.*)", "v=slow\n").problem


@pytest.mark.parametrize("said", ["nan", "NaN", "inf", "-inf", "Infinity"])
def test_what_is_not_finite_is_no_sample(said: str) -> None:
    found = by(r"v=(\S+)", f"v={said}\n")
    assert found.value is None and said in found.problem and "finite" in found.problem


@pytest.mark.parametrize("said", ["12ms", "1.234,5", "fast", "1,23", "-", "0x10", "1e", "1.2.3"])
def test_what_is_no_number_is_told(said: str) -> None:
    found = by(r"v=(\S+)", f"v={said}\n")
    assert found.value is None and repr(said) in found.problem


def test_a_pattern_that_matches_nothing_is_told() -> None:
    assert by("speed: (\\S+)", BENCH).problem == (
        "the pattern 'speed: (\\\\S+)' matches nothing in the output: correct it, or let the check print the number"
    )
    assert by("x", " \n").problem == "nothing was printed: let the script or the check print the number"


def test_the_lines_that_look_most_like_it_are_shown() -> None:
    noise = "".join(f"throughput of chunk {n}\n" for n in range(5000)) + "x" * 3_000_000 + "\n"
    said = by(r"Input token throughput \(tok/s\): +([0-9.]+)", noise + BENCH).problem
    assert "It printed: Output token throughput (tok/s):         1,234.56" in said.replace(" / ", "It printed: ")
    assert "Successful requests" not in said and len(said) < 700
    assert "It printed: mean_itl_ms: 3" in at("$.itl.mean", 'mean_itl_ms: 3\n{"v": 1}\n').problem
    assert "It printed: model,tok/s" in column("tok/sec", "model,tok/s\na,1\n").problem


@pytest.mark.parametrize("pattern", ["(", "a**", r"(?<=x)\d", r"(a)\1", "x{2000}"])
def test_a_pattern_that_cannot_be_used_is_told(pattern: str) -> None:
    found = by(pattern, BENCH)
    assert found.value is None and "cannot be used" in found.problem and "(?m)" not in found.problem


def test_an_optional_group_that_took_no_part_is_passed_over() -> None:
    assert by(r"x(\d)?", "x1 x") == one(1.0)


def test_a_pattern_that_would_run_for_ever_elsewhere_comes_to_its_end() -> None:
    assert by(r"(a+)+$", "a" * 200_000 + "b").problem.find("matches nothing in the output") > 0
    assert by(r"(?:x|x|x?)*y(\d)", "x" * 200_000 + "y7") == one(7.0)


def test_our_time_stamps_colours_and_other_line_ends_are_aside() -> None:
    text = "2026-11-30T12:00:00.000Z \x1b[32mv=7\x1b[0m\r\n2026-11-30T12:00:00.001Z done\r\n"
    assert by(r"^v=(\d+)$", text) == one(7.0)


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
    assert at(path, around.format(json.dumps(DOCUMENT, indent=indent))) == one(value)


def test_a_document_may_stand_behind_words_when_no_line_begins_with_one() -> None:
    assert at("$.v", 'first: {"v": 1}\nresult: {"v": 2}\n') == one(2.0)


def test_a_list_is_a_document_too() -> None:
    assert at("$[1].v", '[{"v": 1}, {"v": 2}]\n') == one(2.0)


def test_several_different_values_are_none() -> None:
    said = at("$.results[*].v", json.dumps(DOCUMENT)).problem
    assert said.startswith("2 numbers were found, 2 different ones (1.5, 2)") and said.endswith(
        "make the path narrower"
    )
    assert at("$.results[*].v", json.dumps(DOCUMENT), aggregate="max") == Measurement(2.0, "", 2)


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
    assert found.value is None and problem in found.problem


def test_a_path_finds_nothing_twice_however_many_steps_it_has() -> None:
    nested: object = list(range(6))
    for _ in range(5):
        nested = [nested] * 6
    assert at("$" + "[*]" * 6, json.dumps(nested), aggregate="max") == Measurement(5.0, "", 46656)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 100_000, "[\n" * 100_000, "x {" * 100_000, '{"a\n' * 100_000]
)
def test_what_only_begins_like_json_is_read_in_bounded_time(text: str) -> None:
    assert at("$.v", text).problem.startswith("no JSON document was printed")


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
    assert found == one(value)


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=300), st.sampled_from([r"(\d+)", "$", "x*", r"\S+"]))
def test_any_text_gives_at_most_one_finite_number(text: str, pattern: str) -> None:
    for found in (by(pattern, text), at("$..v", text), column("a", text), column("a", f"a,b\n{text}", b="1")):
        assert (found.value is None) != (found.problem == "")
        assert found.value is None or math.isfinite(found.value)


PARTS = ["$", "@", ".", "a", "*", "[", "]", "0", "'x'", "?(", ")", "&", "|", " where ", "`", "`parent`", "`sorted`"]
PARTS += ["`len`", "`keys`", "`str()`", "/a", "\\", "+", "-", "==", "<", "~", "!", "{", "\n", "1.5", "`filter(a)`"]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map("".join), st.sampled_from(['{"a": 1, "x": "t"}', '[1, {"a": []}]'])
)
def test_no_path_is_more_than_a_problem(path: str, text: str) -> None:
    assert len(at(path, text).problem) < 400


@pytest.mark.parametrize("text", ["a,1\n" * 263_000, '"\n' * 530_000, ("x" * 1_000_000 + "\n") * 2, "a," * 530_000])
def test_of_a_flood_the_end_is_read(text: str) -> None:
    found = [column("a", "a\n1\n" + text), by(r"(y)$", text)]
    assert all(each.problem.endswith("of the output the last 1 MiB was read") for each in found)
    assert column("ms", f"{text}\nms,name\n5,x\n") == one(5.0)


def test_a_last_line_that_is_longer_than_what_is_read_is_told() -> None:
    assert by("x", "x" * 2_000_000 + "\n").problem.startswith("its last line is longer than what is read")


def test_a_progress_bar_writes_lines() -> None:
    text = "  0%|   |\r 50%|#  |\r100%|###|\rname,ms\r\na,1.5\r\n"
    assert column("ms", text) == one(1.5) == by(r"^a,(\S+)$", text)
    assert at("$.v", 'ready:  99%\r{"v": 2}\n') == one(2.0)
