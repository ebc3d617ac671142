"""firstbad override, reprobe, extend, clone and export, each as a process."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from service.domain.budget import Budget
from service.domain.evidence import Verdict
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow, sha


@pytest.fixture
def id(flow: FakeFlow) -> str:
    made = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(made, 8)
    return made


def test_a_verdict_by_hand_is_sent_with_its_reason(terminal: Terminal, flow: FakeFlow, id: str) -> None:
    done = terminal.run("override", id[:3], sha(3)[:8], "bad", "--why", "seen on my desk")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Bisection {id}: ") and f"firstbad watch {id}" in done.out
    assert [(said.sha, said.verdict, said.why) for said in flow.kept[id].overrides] == [
        (sha(3), Verdict.BAD, "seen on my desk")
    ]
    assert json.loads(terminal.run("override", id, sha(3), "none", "--why", "no", "--json").out)["id"] == id


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("ugly", "--why", "x"), "'ugly' is not one of good, bad, skip, none"), (("bad",), "--why")],
)
def test_what_cannot_be_a_verdict_is_told(terminal: Terminal, id: str, arguments: tuple[str, ...], said: str) -> None:
    done = terminal.run("override", id, sha(3), *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_one_more_run_is_asked_for(terminal: Terminal, id: str) -> None:
    done = terminal.run("reprobe", id, sha(3)[:8], "--why", "to be sure")
    assert (done.status, done.out) == (
        0,
        f"Probe {id}.1 runs {sha(3)[:10]} once more; read it with: firstbad logs -f {id}.1\n",
    )
    assert terminal.run("reprobe", id, "zz", "--why", "x").status == 2


def test_limits_are_changed_and_taken_off_and_show_tells_those_of_now(
    terminal: Terminal, flow: FakeFlow, id: str
) -> None:
    done = terminal.run("extend", id, "--probes", "40", "--wall", "6h")
    assert (done.status, flow.kept[id].budget) == (0, Budget(probes=40, wall_s=6 * 3600.0))
    assert terminal.run("extend", id, "--wall", "none").status == 0
    assert flow.kept[id].budget == Budget(probes=40)
    (row,) = (line for line in terminal.run("show", id).out.splitlines() if line.startswith("budget"))
    assert row.endswith("0 of 40 probes")
    nothing = terminal.run("extend", id)
    assert nothing.status == 2 and "--gpu-hours" in nothing.err


def test_a_clone_is_begun_with_its_changes(terminal: Terminal, flow: FakeFlow, id: str) -> None:
    done = terminal.run("clone", id, "--set", "bad=v9", "--set", "budget.probes=30")
    assert done.status == 0 and f" is like {id}, at http" in done.out
    (made,) = (one for one in flow.kept.values() if one.clone_of == id)
    assert (made.request.bad, made.request.budget.probes) == ("v9", 30)
    assert json.loads(terminal.run("clone", id, "--json").out)["clone_of"] == id
    assert terminal.run("clone", id, "--set", "budgte=3").status == 2


def test_a_report_is_printed_or_written(terminal: Terminal, flow: FakeFlow, id: str, tmp_path: Path) -> None:
    flow.find(id, 5)
    assert terminal.run("export", id).out.startswith("## ")
    for format, begins in (("html", "<!doctype html>"), ("log", "# "), ("junit", "<?xml"), ("json", "{")):
        file = tmp_path / f"report.{format}"
        done = terminal.run("export", id[:3], "--format", format, "-o", str(file))
        assert (done.status, done.out, done.err) == (0, "", "")
        assert file.read_text().startswith(begins)
    ElementTree.parse(tmp_path / "report.junit")
    assert f"git bisect bad {sha(5)}" in (tmp_path / "report.log").read_text()
    nowhere = terminal.run("export", id, "-o", str(tmp_path / "none" / "x"))
    assert nowhere.status != 0 and "no such file" in nowhere.err
    assert "'pdf' is not one of json, md, html, log, junit" in terminal.run("export", id, "--format", "pdf").err
