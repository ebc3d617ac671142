"""firstbad pause, resume, priority and cancel, of one and of several, and what list, show and watch say of it."""

from __future__ import annotations

import json
import os
import pty
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from service.domain.bisection import Node
from service.domain.budget import Budget, Priority
from service.domain.lifecycle import BisectionState, ProbeState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.cli.test_watch import watching
from tests.fakes.flow import FakeFlow


def begun(flow: FakeFlow, number: int = 1) -> list[str]:
    return [flow.submit(SUBMISSION, TESTER).id for _ in range(number)]


def test_pausing_resuming_and_a_priority_say_so(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    paused = terminal.run("pause", id[:3])
    assert (paused.status, paused.err) == (0, "")
    assert paused.out.startswith(f"Bisection {id} is paused; ") and f"firstbad resume {id}" in paused.out
    assert flow.bisection(id).paused_at is not None
    shown = terminal.run("show", id).out
    assert "queued, paused" in shown and "\npaused " in shown
    assert terminal.run("resume", id).out == f"Bisection {id} goes on.\n"
    assert flow.bisection(id).paused_at is None
    assert terminal.run("priority", id, "high").out == f"Bisection {id} has the priority high.\n"
    assert flow.bisection(id).priority is Priority.HIGH
    assert json.loads(terminal.run("priority", id, "low", "--json").out)["priority"] == "low"


def test_a_priority_that_is_none_is_refused_with_those_that_are(terminal: Terminal, flow: FakeFlow) -> None:
    done = terminal.run("priority", *begun(flow), "urgent")
    assert (done.status, done.out) == (2, "")
    assert "urgent" in done.err and "'high', 'normal', 'low'" in done.err


@pytest.mark.parametrize("command", [["pause"], ["resume"], ["priority", "high"], ["cancel"]])
def test_what_has_ended_is_told_with_where_its_answer_is(
    terminal: Terminal, flow: FakeFlow, command: list[str]
) -> None:
    id = flow.find(begun(flow)[0], 5).id
    done = terminal.run(command[0], id, *command[1:])
    assert (done.status, done.out) == (2, "")
    assert "ended" in done.err and f"firstbad show {id}" in done.err


def test_the_list_says_which_are_paused_and_which_go_first(terminal: Terminal, flow: FakeFlow) -> None:
    plain, held, first = begun(flow, 3)
    flow.pause(held, "test")
    flow.prioritize(first, Priority.HIGH, TESTER)
    lines = {line.split()[0]: line for line in terminal.run("list").out.splitlines()[1:]}
    assert "paused" not in lines[plain] and "priority" not in lines[plain]
    assert "queued, paused" in lines[held]
    assert "queued, high priority" in lines[first]


def test_show_says_what_is_spent_and_what_waits(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    budget = Budget(probes=40, wall_s=6 * 3600.0, gpu_s=20 * 3600.0)
    flow.kept[id] = replace(flow.kept[id], budget=budget)
    flow.look_up(id, 8)
    probe = flow.plan(id, 8, state=ProbeState.QUEUED, started_at=None, node=None, gpu_leased_s=5400.0)
    out = terminal.run("show", id).out
    (row,) = (line for line in out.splitlines() if line.startswith("budget"))
    assert row.split(maxsplit=1)[1].startswith("0 of 40 probes, ")
    assert row.endswith(" of 6 h 0 min, 1.50 of 20 GPU hours")
    assert "0 done, 1 waiting for their turn" in out
    flow.tried[probe.id] = replace(probe, sent_at=datetime.now(UTC))
    out = terminal.run("show", id).out
    assert "0 done, 1 sent and not begun" in out and "waiting for their turn" not in out
    flow.plan(id, 0)
    assert "0 done, 1 running on node-1, 1 sent and not begun" in terminal.run("show", id).out


def test_show_says_who_submitted_paused_and_cancelled_it_and_how_it_goes_on(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    assert "\nsubmitter   test\n" in terminal.run("show", id).out
    assert "test" in terminal.run("list").out
    flow.pause(id, "ada")
    (row,) = (line for line in terminal.run("show", id).out.splitlines() if line.startswith("paused"))
    assert row.endswith(f", by ada; go on with: firstbad resume {id}")
    flow.cancel(id, "bob")
    (row,) = (line for line in terminal.run("show", id).out.splitlines() if line.startswith("cancelled"))
    assert " UTC, " in row and row.endswith(", by bob")


def test_show_lists_all_that_was_asked_for_when_it_is_asked(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    assert "sandbox" not in terminal.run("show", id).out
    out = terminal.run("show", id, "--request").out
    assert "Request" in out and "process, network none, at most 1 h 0 min a run" in out
    assert "Nothing was begun" not in out


def test_watching_tells_of_pauses_and_priorities_as_they_come(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    flow.look_up(id, 8)
    with watching(terminal, "watch", id) as (_, lines):
        assert next(lines) == "good v1 .. bad main: 8 candidates"
        flow.pause(id, "test")
        assert next(lines) == f"paused; firstbad resume {id} lets it go on"
        flow.prioritize(id, Priority.LOW, TESTER)
        assert next(lines) == "has the priority low"
        flow.resume(id, "test")
        assert next(lines) == "goes on"


def test_an_id_that_names_none_keeps_no_other_from_being_paused(terminal: Terminal, flow: FakeFlow) -> None:
    first, second = begun(flow, 2)
    done = terminal.run("pause", first, "", second)
    assert done.status == 2
    assert [flow.bisection(id).paused_at is not None for id in (first, second)] == [True, True]
    assert done.err.splitlines()[:2] == ["firstbad: 1 of 3 refused it", "  the id is empty"]


def test_several_are_cancelled_at_once_and_what_one_refuses_is_told(terminal: Terminal, flow: FakeFlow) -> None:
    first, second, over = begun(flow, 3)
    flow.find(over, 5)
    done = terminal.run("cancel", first, over, second)
    assert done.status == 2
    assert done.out.splitlines() == [f"Bisection {id} is cancelled." for id in (first, second)]
    assert done.err.splitlines()[0] == "firstbad: 1 of 3 refused it"
    assert over in done.err
    again = json.loads(terminal.run("cancel", first, second, "--json").out)
    assert [view["state"] for view in again] == ["cancelled", "cancelled"]


def test_all_that_live_are_cancelled_only_when_that_is_confirmed(terminal: Terminal, flow: FakeFlow) -> None:
    ids = begun(flow, 3)
    flow.find(ids[0], 5)
    asked = terminal.run("cancel", "--all")
    assert (asked.status, asked.out) == (2, "")
    assert asked.err.splitlines() == ["firstbad: this would cancel 2 bisections", "  add --yes to do so"]
    assert not flow.bisections({BisectionState.CANCELLED})
    assert terminal.run("cancel", "--all", "--yes").status == 0
    assert {found.id for found in flow.bisections({BisectionState.CANCELLED})} == set(ids[1:])
    assert terminal.run("cancel", "--all").status == 0


def test_a_person_is_asked_before_all_are_cancelled(terminal: Terminal, flow: FakeFlow) -> None:
    begun(flow, 2)
    for answer, left in ((b"n\n", 2), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        with terminal.start("cancel", "--all", stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            said = b""
            while b"Cancel 2 bisections?" not in said:
                said += os.read(ours, 1000)
            os.write(ours, answer)
            process.wait(60)
        os.close(ours)
        assert len(flow.bisections({BisectionState.QUEUED})) == left


def test_those_in_one_state_can_be_cancelled(terminal: Terminal, flow: FakeFlow) -> None:
    queued, searching = begun(flow, 2)
    flow.look_up(searching, 8)
    assert terminal.run("cancel", "--all", "--state", "queued", "--yes").out == f"Bisection {queued} is cancelled.\n"
    assert flow.bisection(searching).state is BisectionState.CHECKING_ENDS


def test_more_than_one_list_holds_are_all_cancelled(terminal: Terminal, flow: FakeFlow) -> None:
    (id,) = begun(flow)
    flow.kept.update({f"{number}": replace(flow.kept[id], id=f"{number}") for number in range(1000, 1204)})
    assert len(terminal.run("cancel", "--all", "--yes").out.splitlines()) == 205


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no bisection is named"),
        (["--state", "queued"], "--state is given without --all"),
        (["b1", "--all"], "ids are named, and --all"),
        (["--all", "--state", "found"], "--state found: that has ended"),
    ],
)
def test_what_is_to_be_cancelled_must_be_clear(terminal: Terminal, arguments: list[str], said: str) -> None:
    done = terminal.run("cancel", *arguments)
    assert done.status == 2 and said in done.err


def test_nodes_show_labels_and_models_where_there_are_any(terminal: Terminal, flow: FakeFlow) -> None:
    assert "LABELS" not in terminal.run("nodes").out
    labelled = Node("n1", 2, datetime.now(UTC), "alive", labels=("nvlink", "rack-2"), models=("Qwen/Qwen3-8B",))
    flow.machines = (labelled, *flow.machines)
    header, *rows = terminal.run("nodes").out.splitlines()
    assert "LABELS" in header and "MODELS" in header
    assert "nvlink, rack-2" in rows[0] and "Qwen/Qwen3-8B" in rows[0]


def test_a_request_can_be_sent_with_a_key(terminal: Terminal, flow: FakeFlow) -> None:
    request = b"repo: https://git.example.org/x.git\ngood: v1\nbad: main\nscript: 'true'\n"
    assert terminal.run("submit", "-", "--key", "nightly", "--wait", "0", typed=request).status == 0
    assert flow.keys == ["nightly"]
