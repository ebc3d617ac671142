"""What is shown to people whose terminal is narrow, to programs, and to whom nobody knows."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from service.domain.access import Scope
from service.domain.lifecycle import BisectionState
from service.doors.gate import Gate
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving


@pytest.mark.parametrize("columns", [60, 240])
def test_a_list_fits_a_terminal_and_is_whole_for_a_program(terminal: Terminal, flow: FakeFlow, columns: int) -> None:
    id = flow.submit(replace(SUBMISSION, bad="a-branch-with-a-name-" + "x" * 80), TESTER).id
    flow.change(id, "state", state=BisectionState.PREPARING)
    piped = terminal.with_env(COLUMNS=str(columns)).run("list").out.splitlines()
    assert len(piped) == 2 and "x" * 80 in piped[1]
    shown = terminal.with_env(COLUMNS=str(columns), FORCE_COLOR="1").run("list").out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert len(lines) == 2 and lines[1].startswith(id)
    assert max(map(len, lines)) <= columns
    assert ("SUBMITTER" in lines[0]) == (columns > 200)


def test_a_log_is_json_a_line_for_a_program(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    lines = terminal.run("logs", f"{id}.1", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == [{"line": "one"}, {"line": "two"}]


def test_the_token_of_the_environment_is_sent_and_never_shown(terminal: Terminal) -> None:
    wrong = terminal.with_env(FIRSTBAD_TOKEN="no token").run("list")
    assert (wrong.status, len(wrong.err.splitlines())) == (2, 2)
    assert "no token" not in wrong.err.replace("no token has", "").replace("no token holds", "")


def test_a_service_that_asks_for_a_token_is_told_where_one_belongs(terminal: Terminal) -> None:
    flow = FakeFlow()
    token = flow.create_token("ann", Scope.READ, "test")[1]
    with serving(create_app(flow, gate=Gate(open=False))) as url:
        for given in ("", "fb_wrong"):
            done = terminal.with_env(FIRSTBAD_TOKEN=given, FIRSTBAD_URL=url).run("list")
            assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 2)
            assert "FIRSTBAD_TOKEN" in done.err.splitlines()[1]
        known = terminal.with_env(FIRSTBAD_TOKEN=token, FIRSTBAD_URL=url)
        assert known.run("list").status == 0
        refused = known.run("nodes", "--return", "node-1")
        assert (refused.status, refused.out, token in refused.err) == (2, "", False)
        assert "scope" in refused.err
