"""Watching goes with what happens: each line is read before the next thing is let happen."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from firstbad import Client
from service.cli.watch import eta
from service.domain.bisection import Answer, Purpose
from service.domain.evidence import Fault, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow, commit, sha
from tests.fakes.server import serving


@contextmanager
def watching(terminal: Terminal, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[str]]]:
    with terminal.start(*arguments) as process:
        assert process.stdout is not None
        yield process, (line.decode().rstrip("\n") for line in process.stdout)
        process.kill()


def test_each_verdict_is_a_line_when_no_terminal_reads(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with watching(terminal, "watch", id) as (process, lines):
        assert next(lines) == "Preparing: fetching the repository and looking up the commits"
        flow.look_up(id, 8, notes=("a merge base is used",))
        assert next(lines) == "good v1 .. bad main: 8 candidates"
        assert next(lines) == "note: a merge base is used"
        flow.judge(flow.plan(id, 8, Purpose.BAD_END), Verdict.BAD, "script ended with exit status 1")
        assert next(lines) == f"  #1   {sha(8)[:10]}  bad    bad end: script ended with exit status 1  1.5 s"
        assert next(lines) == "  1 probe done"
        end = flow.plan(id, 0, Purpose.GOOD_END)
        flow.fault(end, Fault("no-gpu", "no card is free"))
        assert next(lines) == f"  #2   {sha(0)[:10]}  fault  of the node, not of the commit: no card is free"
        flow.fault(flow.probe(end.id), Fault("no-gpu", "no card is free"))
        flow.judge(flow.probe(end.id), Verdict.GOOD, "script passed")
        assert next(lines) == f"  #2   {sha(0)[:10]}  good   good end: script passed  1.5 s"
        assert next(lines) == "  2 probes done"
        flow.search(id, 8, 3.0)
        probe = flow.plan(id, 4)
        flow.change(id, "narrowed", candidates_left=4, expected_probes=2.0)
        flow.judge(probe, Verdict.GOOD, "script passed")
        assert next(lines) == f"  #3   {sha(4)[:10]}  good   script passed  1.5 s"
        assert next(lines) == "  4 of 8 candidates left, 3 probes done, about 2 to come"
        flow.find(id, 5)
        rest = list(lines)
        assert f"{sha(5)[:10]} is the first bad commit: Change number 5" in rest
        assert process.wait(60) == 0


def test_waiting_for_a_node_is_told_once(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with watching(terminal, "watch", id) as (_, lines):
        next(lines)
        known = {"good_shas": (sha(0),), "bad_sha": sha(8), "candidates": 8, "candidates_left": 8}
        flow.history.update({sha(index): commit(index) for index in range(9)})
        flow.change(id, "state", state=BisectionState.PREPARING, **known)
        assert next(lines) == "good v1 .. bad main: 8 candidates"
        assert next(lines) == "waits for a node that builds"
        flow.change(id, "state", state=BisectionState.PREPARING)
        flow.judge(flow.plan(id, 8, Purpose.BAD_END), Verdict.BAD, "script ended with exit status 1")
        assert next(lines).startswith(f"  #1   {sha(8)[:10]}  bad")


def test_what_waits_for_its_turn_is_told_to_a_program_too(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.plan(id, 8, Purpose.BAD_END, state=ProbeState.QUEUED, started_at=None, node=None)
    with watching(terminal, "watch", id) as (_, lines):
        assert next(lines) == "good v1 .. bad main: 8 candidates"
        assert next(lines) == "0 probes done, 1 waiting for their turn"


def test_submit_can_go_on_watching(terminal: Terminal, flow: FakeFlow, tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text("{repo: 'https://git.example.org/x.git', good: v1, bad: main, script: x}")
    flow.then = lambda id: flow.find(id, 5)
    done = terminal.run("submit", "request.yaml", "--watch")
    assert done.status == 0
    assert f"{sha(5)[:10]} is the first bad commit" in done.out


def test_an_interrupt_stops_the_watching_and_not_the_bisection(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with watching(terminal, "watch", id) as (process, lines):
        next(lines)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert f"firstbad cancel {id}" in said and "Traceback" not in said
    assert flow.bisection(id).state == "queued"


def test_a_terminal_shows_a_bar_and_what_runs(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.search(id, 4, 2.0)
    flow.plan(id, 3)
    master, slave = pty.openpty()
    process = terminal.start("watch", id, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while b"on node-1" not in seen:
        seen += os.read(master, 65536)
    assert b"4 of 8 candidates left, 0 probes done, about 2 to come" in seen
    assert sha(3)[:10].encode() in seen and b"running" in seen
    flow.find(id, 5)
    while b"is the first bad commit" not in seen:
        seen += os.read(master, 65536)
    os.set_blocking(master, False)
    assert process.wait(60) == 0
    os.close(master)


def test_a_service_that_is_started_again_is_awaited(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        url = first.enter_context(serving(create_app(flow)))
        process, lines = stack.enter_context(watching(terminal, "watch", id, "--url", url))
        assert next(lines).startswith("Preparing")
        first.close()
        assert process.stderr is not None
        assert process.stderr.readline().decode() == f"firstbad: no firstbad answers at {url}; waiting for it\n"
        flow.find(id, 5)
        stack.enter_context(serving(create_app(flow), int(url.rpartition(":")[2])))
        assert f"{sha(5)[:10]} is the first bad commit: Change number 5" in list(lines)
        assert process.wait(60) == 0


def test_a_service_that_fails_for_a_while_is_awaited(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with watching(terminal, "watch", id) as (process, lines):
        assert next(lines).startswith("Preparing")
        flow.broken = RuntimeError("the database is away")
        assert process.stderr is not None
        assert process.stderr.readline() == b"firstbad: the service met an unexpected error; waiting for it\n"
        flow.broken = None
        flow.find(id, 5)
        assert f"{sha(5)[:10]} is the first bad commit: Change number 5" in list(lines)
        assert process.wait(60) == 0


def test_of_an_ended_one_faults_stand_at_their_probe_and_what_was_not_needed_is_told(
    terminal: Terminal, flow: FakeFlow
) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.judge(flow.plan(id, 8, Purpose.BAD_END), Verdict.BAD, "script ended with exit status 1")
    faulty = flow.plan(id, 0, Purpose.GOOD_END)
    for message in ("no card is free", "no card is free", "the disk is full"):
        flow.fault(flow.probe(faulty.id), Fault("node", message))
    flow.judge(flow.probe(faulty.id), Verdict.GOOD, "script passed")
    unneeded = flow.plan(id, 4)
    flow.end(id, BisectionState.SUSPECTS, Answer((sha(3), sha(4)), "they cannot be tested"))
    flow.tried[unneeded.id] = replace(flow.probe(unneeded.id), finished_at=unneeded.planned_at + timedelta(seconds=2))
    lines = [line for line in terminal.run("watch", id).out.splitlines() if line.startswith("  #")]
    assert lines == [
        f"  #1   {sha(8)[:10]}  bad    bad end: script ended with exit status 1  1.5 s",
        f"  #2   {sha(0)[:10]}  fault  of the node, not of the commit: no card is free (2 times)",
        f"  #2   {sha(0)[:10]}  fault  of the node, not of the commit: the disk is full",
        f"  #2   {sha(0)[:10]}  good   good end: script passed  1.5 s",
        f"  #3   {sha(4)[:10]}         not needed any more",
    ]


def test_the_time_that_is_left_is_told_by_the_pace_so_far(flow: FakeFlow, terminal: Terminal) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    begun = flow.bisection(id).created_at
    for number in (1, 2):
        probe = flow.judge(flow.plan(id, number), Verdict.GOOD, "script passed")
        start = begun + timedelta(seconds=60 * (number - 1))
        flow.tried[probe.id] = replace(probe, started_at=start, finished_at=start + timedelta(seconds=60))
    flow.search(id, 4, 3.0)
    with Client(terminal.url) as client:
        progress = next(client.changes(id))
        assert eta(progress) == ", about 3 min at this pace"
        flow.pause(id, "test")
        assert eta(next(client.changes(id))) == ""
