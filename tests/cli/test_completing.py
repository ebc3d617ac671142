"""What a shell is offered, by the programs that shells call."""

from __future__ import annotations

import socket

import pytest

from service.domain.lifecycle import BisectionState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow


def offered(terminal: Terminal, line: str) -> list[str]:
    """`line`: as it stands there, up to the cursor."""
    words = line.split(" ")
    asked = terminal.with_env(COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), _FIRSTBAD_COMPLETE="complete_bash")
    with asked.start() as process:
        out, err = process.communicate(timeout=60)
    assert err == b""
    return out.decode().split()


def test_commands_and_options_are_offered(terminal: Terminal) -> None:
    assert offered(terminal, "firstbad sh") == ["show"]
    assert "--probes" in offered(terminal, "firstbad show --p")
    assert offered(terminal, "firstbad db up") == ["upgrade"]


def test_ids_are_offered_and_those_that_live_where_they_must(terminal: Terminal, flow: FakeFlow) -> None:
    live = flow.submit(SUBMISSION, TESTER).id
    ended = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    assert set(offered(terminal, "firstbad show ")) == {live, ended}
    assert offered(terminal, f"firstbad show {ended}") == [ended]
    assert offered(terminal, "firstbad pause ") == [live]
    assert f"{ended}." in offered(terminal, "firstbad logs ")
    assert offered(terminal, f"firstbad logs {ended}.1") == [f"{ended}.1"]


def test_states_and_nodes_are_offered(terminal: Terminal, flow: FakeFlow) -> None:
    assert offered(terminal, "firstbad list --state f") == ["found", "failed"]
    assert offered(terminal, "firstbad list --state check") == ["checking-ends"]
    assert offered(terminal, "firstbad nodes --return ") == ["node-1"]
    assert offered(terminal, "firstbad priority x ") == ["high", "normal", "low"]


def test_a_state_in_one_word_is_taken(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.change(id, "state", state=BisectionState.CHECKING_ENDS)
    assert id in terminal.run("list", "--state", "checking-ends").out


@pytest.mark.parametrize("url", ["nonsense", "http://[", None])
def test_nothing_is_offered_and_nothing_is_said_where_no_service_answers(terminal: Terminal, url: str | None) -> None:
    if url is None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert offered(terminal.with_env(FIRSTBAD_URL=url), "firstbad show ") == []


def test_a_service_that_says_nothing_keeps_nobody_waiting(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert offered(terminal.with_env(FIRSTBAD_URL=url), "firstbad show ") == []
