"""A metric over the commits as text."""

from __future__ import annotations

import io
import json
import os
import pty
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from service.application.curve import Curve, Point, Run, Side, Step
from service.cli.plot import Plot
from service.domain.evidence import Verdict
from service.domain.metric import Better
from service.doors.api import render
from service.search.metric.samples import Interval
from tests.api.measured import begun
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.doors.curves import STEP, stepped
from tests.fakes.flow import FakeFlow, sha

GAP = "  "
GOLDEN = [
    "throughput (tok/s, higher is better)",
    "                  400                             600    runs",
    "good end                                       ├[╪═]┤       4  585 (570 to 600) tok/s",
    "bad end           ├[═╪]┤                                    4  415 (400 to 430) tok/s",
    "────────────────────────────────────────────────────────────────────────────────────────",
    "686780cab0  good                               ├─●──┤       4  Begin",
    "512572f7a6  good          ├────────●────────┤          1 of 2  Do not wait",
    "1bcfb39c77           ·                                      1  [throttled] Wait longer",
    "── 29 % (25 to 33 %) worse ─────────────────────────────────────────────────────────────",
    "3633d884b9  bad   ├──■─┤                                    3  A subject that is very l…",
    "e74ec615d6  bad   ├──■─┤                                    4  End",
]
GOLDEN_ASCII = [
    "throughput (tok/s, higher is better)",
    "                  400                  600    runs",
    "good end                              [+]|       4  585 (...",
    "bad end           |[+]                           4  415 (...",
    "------------------------------------------------------------",
    "686780cab0  good                      |o-|       4  Begin",
    "512572f7a6  good        |-----o----|        1 of 2  Do no...",
    "-- still searched: 2 commits -------------------------------",
    "1bcfb39c77          .                            1  [thro...",
    "-- 29 % (25 to 33 %) worse ---------------------------------",
    "3633d884b9  bad   |-#|                           3  A sub...",
    "e74ec615d6  bad   |-#|                           4  End",
]


def run(value: float, dropped: str = "", mark: str = "") -> Run:
    return Run("b1.1", value, "node-1", (mark,) if mark else (), dropped)


def small() -> Curve:
    """Of round numbers: from 400 to 600."""
    good = Side((570.0, 580.0, 590.0, 600.0), Interval(585.0, 570.0, 600.0))
    bad = Side((400.0, 410.0, 420.0, 430.0), Interval(415.0, 400.0, 430.0))
    points = (
        Point(sha(0), "Begin", 0, good.level, tuple(map(run, good.values)), Verdict.GOOD, "good"),
        Point(
            sha(3),
            "Do not wait",
            3,
            Interval(500.0, 450.0, 550.0),
            (run(500.0), run(900.0, "it drifted")),
            Verdict.GOOD,
        ),
        Point(sha(4), "Wait longer", 4, None, (run(420.0, mark="throttled: power cap"),)),
        Point(sha(5), "A subject that is very long and goes on and on", 5, bad.level, (run(415.0),) * 3, Verdict.BAD),
        Point(sha(8), "End", 8, bad.level, tuple(map(run, bad.values)), Verdict.BAD, "bad"),
    )
    step = Step((sha(5),), 5, 5, Interval(0.29, 0.25, 0.33))
    return Curve("throughput", "tok/s", Better.HIGHER, points, good, bad, (step,), 8)


def plotted(curve: Curve, width: int, rows: int | None = None, encoding: str = "utf-8") -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=out, width=width, legacy_windows=False).print(Plot(render.curve(curve), rows))
    out.flush()
    written: bytes = out.buffer.getvalue()  # type: ignore[attr-defined]
    return written.decode(encoding).splitlines()


def test_a_row_a_commit_and_a_rule_at_the_step() -> None:
    assert plotted(small(), 88) == GOLDEN


def test_a_terminal_that_knows_no_more_gets_ascii() -> None:
    lines = plotted(replace(small(), left=(4, 5)), 60, encoding="ascii")
    assert lines == GOLDEN_ASCII


@pytest.mark.parametrize("width", [20, 40, 57, 80, 133, 300])
@pytest.mark.parametrize("text", ["宽" * 200, "\x1b[31mred \u202e", "x" * 5000, "two\nlines"])
def test_no_line_is_wider_than_the_terminal(width: int, text: str) -> None:
    points = tuple(replace(point, subject=text) for point in small().points)
    steps = (replace(small().steps[0], relative=False),)
    curve = replace(small(), name=text, unit=text, points=points, steps=steps)
    lines = plotted(curve, width)
    assert len(lines) == len(plotted(small(), 300))
    assert max(cell_len(line) for line in lines) <= width
    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def test_steps_that_are_not_pinned_down_and_what_is_searched_say_so() -> None:
    steps = (
        Step(tuple(sha(at) for at in (4, 5)), 4, 5, Interval(0.29, 0.25, 0.33)),
        Step((sha(8),), 8, 8, Interval(20.0, 10.0, 30.0), relative=False),
    )
    rules = [line.strip("─ ") for line in plotted(replace(small(), steps=steps, left=(4, 8)), 100) if "── " in line]
    assert rules == [
        "29 % (25 to 33 %) worse: one of 2 commits, 4 to 5",
        "still searched: 5 commits",
        "20 (10 to 30) tok/s worse",
    ]


def test_where_lines_are_few_the_rows_around_the_step_are_kept() -> None:
    lines = plotted(small(), 100, rows=2)
    assert [line[:10] for line in lines if line[:10] in {sha(at)[:10] for at in range(9)}] == [sha(4)[:10], sha(5)[:10]]
    assert lines[-1] == "3 more measured"


def test_nothing_is_measured_yet_and_open_intervals() -> None:
    assert plotted(Curve("latency", "", Better.LOWER), 80) == [
        "latency (lower is better)",
        "nothing is measured yet",
    ]
    first, *others = small().points
    open_ = replace(first, level=Interval(585.0, float("-inf"), float("inf")))
    row = plotted(replace(small(), points=(open_, *others)), 88)[5]
    assert row.split(GAP)[2].strip("─") == "●" and len(row.split(GAP)[2]) == 35


def test_show_and_watch_print_it(terminal: Terminal, flow: FakeFlow) -> None:
    id = begun(flow)
    shown = terminal.run("show", id)
    lines = shown.out.splitlines()
    start = lines.index("Output token throughput (tok/s, higher is better)")
    rows = [line for line in lines[start:] if line[:10] in {point.sha[:10] for point in stepped().points}]
    assert [line[:10] for line in rows] == [point.sha[:10] for point in stepped().points]
    assert rows[1].endswith("5 of 6  [throttled] Change number 62")
    assert lines[lines.index(rows[5]) + 1].startswith("── 12.1 % (9.4 to 14.8 %) worse ──")
    assert f"page        {terminal.url}/bisections/{id}" in shown.out
    assert "\x1b" not in shown.out
    flow.find(id, STEP)
    watched = terminal.run("watch", id).out
    assert watched.count("Output token throughput") == 1
    assert "── 12.1 % (9.4 to 14.8 %) worse ──" in watched


def test_what_goes_to_no_utf_8_is_ascii(terminal: Terminal, flow: FakeFlow) -> None:
    process = terminal.with_env(PYTHONIOENCODING="ascii").start("show", begun(flow))
    shown = process.communicate()[0].decode("ascii")
    assert "-- 12.1 % (9.4 to 14.8 %) worse --" in shown and "|-o" in shown


def test_a_failure_that_is_no_number_has_no_plot(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    assert "is better" not in terminal.run("show", id).out
    assert json.loads(terminal.run("show", id, "--json").out)["links"]["metric"] is None


def test_a_terminal_shows_it_while_it_grows(terminal: Terminal, flow: FakeFlow) -> None:
    id = begun(flow)
    flow.plan(id, 130)
    master, slave = pty.openpty()
    process = terminal.with_env(COLUMNS="100", LINES="40").start("watch", id, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while b"Change number 249" not in seen:
        seen += os.read(master, 65536)
    assert "├─■─┤".encode() in seen and b"12.1 % (9.4 to 14.8 %) worse" in seen and b"running" in seen
    flow.find(id, STEP)
    while b"is the first bad commit" not in seen:
        seen += os.read(master, 65536)
    os.set_blocking(master, False)
    assert process.wait(60) == 0
    os.close(master)
