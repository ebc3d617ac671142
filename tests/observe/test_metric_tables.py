"""Numbers out of the CSV tables that a check printed."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.observe.metrics import column, one

TABLE = """loading, please wait
pp,tg,"avg, ts",note
512,0,999.0,old
model,n,t/s
{before}a,512,100.5
"b, the ""big"" one",512.0,40
a,128,30
{after}"""


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("before", ["", "INFO begins\n", "2026-11-30 12:00:00,123 INFO a, b\n"])
@pytest.mark.parametrize("after", ["", "\n", "done, bye, now\n", "2026-11-30 12:00:00,123 INFO a,b\n", "x\n1;2,3\n"])
def test_a_column_of_the_last_table_is_found_among_lines_of_a_log(delimiter: str, before: str, after: str) -> None:
    table = TABLE.format(before=before, after=after).replace(",", delimiter)
    big = f'b{delimiter} the "big" one'
    assert column("t/s", table, model="a", n="512") == one(100.5)
    assert column("t/s", table, model="a", n="128") == one(30.0)
    assert column("t/s", table, model=big) == one(40.0)
    assert column(f"avg{delimiter} ts", table) == one(999.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ms\n5\n", 5.0),
        ("name, ms\na,  1.5\n", 1.5),
        ("name,ms\na,  1.5\nstep, 7\n", None),
        ("ms,name\n1.5,a\ndone,b c,d\n", 1.5),
        ("\ufeffname;ms\r\na;1,234.5\r\n", 1234.5),
        ("name,ms\na,1\nname,ms\na,2\n", 2.0),
        ("name,ms\na,1\nname,ms\n", 1.0),
        ('name,ms\n"two\nlines",3\n', 3.0),
        ('name,ms\n"never ends,3\nb,4\n', 4.0),
    ],
)
def test_tables_are_read_as_they_are_written(text: str, value: float | None) -> None:
    assert column("ms", text).value == value


def test_a_log_line_of_other_spacing_is_no_row() -> None:
    assert column("ms", "name,ms\na,1.5\nINFO took, 7\n") == one(1.5)


@pytest.mark.parametrize(
    ("name", "where", "problem"),
    [
        ("speed", {}, "no CSV table with a column 'speed'"),
        ("t/s", {"size": "1"}, "no column 'size', but 'model', 'n', 't/s'"),
        ("t/s", {"model": "c"}, "no row of the last CSV table has model 'c', but 'a', 'b, the \"big\" one'"),
        ("t/s", {"model": "a"}, "2 numbers were found, 2 different ones (100.5, 30): add `aggregate: median`"),
        ("model", {"n": "128"}, "'a' is no number"),
    ],
)
def test_why_a_column_gives_no_number_is_told(name: str, where: dict[str, str], problem: str) -> None:
    found = column(name, TABLE.format(before="", after=""), **where)
    assert found.value is None and problem in found.problem


def test_a_table_without_rows_and_a_cell_without_a_number_are_told() -> None:
    assert "has no rows" in column("ms", "name,ms\n").problem
    assert "'n/a' is no number" in column("ms", "name,ms\na,n/a\n").problem
    assert "'' is no number" in column("ms", "name,ms\na,\n").problem
    assert "'nan' is not a finite number" in column("ms", "name,ms\na,nan\n").problem


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=8)


@settings(deadline=None, max_examples=60)
@example([("", 0.0), (" ", 0.0)], ",")
@given(
    st.lists(st.tuples(CELLS, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=5),
    st.sampled_from(",\t;"),
)
def test_what_the_csv_module_writes_is_read(rows: list[tuple[str, float]], delimiter: str) -> None:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("the number", "note", "row"), *((value, note, n) for n, (note, value) in enumerate(rows))])
    for number, (_, value) in enumerate(rows):
        assert column("the number", file.getvalue(), row=str(number)) == one(value)
