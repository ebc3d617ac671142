from __future__ import annotations

import inspect
import json
import os
import pty
import socket
import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest

from service.cli.up import up
from service.domain.bisection import Answer, Gpu, Origin, Problem
from service.domain.evidence import Fault, Phase, Signature, Verdict
from service.domain.lifecycle import BisectionState, BuildState
from service.settings import Settings
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow, commit, sha


def ended(flow: FakeFlow, state: BisectionState) -> str:
    id = flow.submit(SUBMISSION, TESTER).id
    if state is BisectionState.FOUND:
        return flow.find(id, 5).id
    flow.look_up(id, 8)
    answer = Answer((sha(3), sha(4)), "they cannot be tested") if state is BisectionState.SUSPECTS else None
    problem = (
        Problem("bad-ends", "The two ends do not differ", "both pass", advice="look again") if not answer else None
    )
    return flow.end(id, state, answer, problem).id


@pytest.mark.parametrize(
    ("state", "status", "says"),
    [
        (BisectionState.FOUND, 0, f"{sha(5)[:10]} is the first bad commit: Change number 5"),
        (BisectionState.SUSPECTS, 1, "one of 2 commits is the first bad one"),
        (BisectionState.REFUSED, 2, "both pass"),
        (BisectionState.FAILED, 3, "look again"),
        (BisectionState.CANCELLED, 4, "Cancelled"),
        (BisectionState.QUEUED, 5, "Preparing"),
    ],
)
def test_the_exit_status_of_show_and_watch_tells_how_it_ended(
    terminal: Terminal, flow: FakeFlow, state: BisectionState, status: int, says: str
) -> None:
    live = state is BisectionState.QUEUED
    id = flow.submit(SUBMISSION, TESTER).id if live else ended(flow, state)
    shown = terminal.run("show", id)
    assert (shown.status, shown.err) == (status, "")
    assert says in shown.out
    as_json = terminal.run("show", id, "--json")
    assert (as_json.status, json.loads(as_json.out)["state"]) == (status, state)
    if not live:
        watched = terminal.run("watch", id)
        assert (watched.status, watched.err) == (status, "")
        assert says in watched.out
        assert json.loads(terminal.run("watch", id, "--json").out)["state"] == state


def test_the_report_holds_the_commit_and_the_evidence(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    lines = terminal.run("show", id, "--probes").out.splitlines()
    assert f"  commit   {sha(5)}" in lines
    assert "  author   Ann Example" in lines
    assert "  date     2025-09-24 08:04 UTC" in lines
    evidence = lines[lines.index("Evidence") + 2 :][:4:2]
    assert [line.split()[:3] for line in evidence] == [
        [sha(5)[:10], "bad", f"{id}.4"],
        [sha(4)[:10], "good", f"{id}.3"],
    ]
    assert len(lines[lines.index("Probes") + 2 :]) == 4
    assert not any(line.endswith(" ") for line in lines)


def test_the_list_is_newest_first_and_can_be_narrowed(terminal: Terminal, flow: FakeFlow) -> None:
    assert terminal.run("list").err == "No bisections. Start one with: firstbad submit request.yaml\n"
    old, new = ended(flow, BisectionState.FOUND), flow.submit(SUBMISSION, TESTER).id
    assert [line.split()[0] for line in terminal.run("list").out.splitlines()] == ["ID", new, old]
    assert [item["id"] for item in json.loads(terminal.run("list", "--json").out)] == [new, old]
    assert [item["id"] for item in json.loads(terminal.run("list", "--json", "--live").out)] == [new]
    assert [item["id"] for item in json.loads(terminal.run("list", "--json", "--state", "found").out)] == [old]


def test_an_id_may_be_shortened_as_long_as_it_is_clear(terminal: Terminal, flow: FakeFlow) -> None:
    first, second = ended(flow, BisectionState.FOUND), ended(flow, BisectionState.REFUSED)
    assert terminal.run("show", first[:2]).status == 0
    assert terminal.run("show", second[:4]).status == 2
    assert terminal.run("show", "x").err.startswith("firstbad: there is no bisection 'x'")
    for arguments in (["show", "0"], ["watch", "0"], ["cancel", "0"], ["logs", "0.1"]):
        unclear = terminal.run(*arguments)
        assert unclear.status == 2
        assert unclear.err.splitlines() == ["firstbad: 2 bisections begin with '0'", f"  name one: {second}, {first}"]


def test_an_empty_id_is_refused(terminal: Terminal) -> None:
    done = terminal.run("show", "")
    assert (done.status, done.err.splitlines()) == (2, ["firstbad: the id is empty", "  firstbad list shows all"])


def test_what_is_left_of_a_range_is_listed_of_ended_ones_too(terminal: Terminal, flow: FakeFlow) -> None:
    ended(flow, BisectionState.FOUND)
    assert "found  1 of 8  " in terminal.run("list").out


def test_a_wrong_state_is_told_the_right_ones(terminal: Terminal) -> None:
    for written, hint in (("nonsense", False), ("found,failed", True)):
        done = terminal.run("list", "--state", written)
        assert done.status == 2
        assert done.err.startswith(
            f"firstbad: invalid value for '--state': {written!r} is not one of queued, preparing"
        )
        assert ("repeat --state" in done.err) == hint


def test_the_time_of_a_probe_is_that_of_its_run(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    judged = flow.judge(flow.plan(id, 8), Verdict.BAD, "script ended with exit status 1")
    assert judged.outcome is not None
    phases = (Phase("install", 0.5, 1.0), Phase("script", 1.5, 3.0))
    flow.tried[judged.id] = replace(judged, outcome=replace(judged.outcome, phases=phases))
    told = [terminal.run("show", id, "--probes").out]
    flow.cancel(id, "test")
    told.append(terminal.run("watch", id).out)
    assert all("4.5 s" in out and "1.5 s" not in out for out in told)


def test_a_reason_of_several_lines_takes_one_in_a_table(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.judge(flow.plan(id, 4), Verdict.SKIP, "3 faults, the last: no image\nline two")
    out = terminal.run("show", id, "--probes").out
    assert out.splitlines()[-1].endswith("3 faults, the last: no image")


def test_the_log_of_suspects_is_that_of_a_bad_one(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.judge(flow.plan(id, 3), Verdict.SKIP, "script ended with exit status 125")
    flow.judge(flow.plan(id, 4), Verdict.BAD, "script ended with exit status 1")
    flow.end(id, BisectionState.SUSPECTS, Answer((sha(3), sha(4)), "they cannot be tested"))
    assert f"firstbad logs {id}.2" in terminal.run("show", id).out


def test_of_many_suspects_the_first_and_the_last_are_shown_below_what_to_do(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 120)
    why = "the budget of 3 probes is spent (3 probes in 9 s)"
    flow.end(id, BisectionState.SUSPECTS, Answer(tuple(sha(n) for n in range(1, 121)), why))
    lines = terminal.run("show", id).out.splitlines()
    assert lines[0] == "one of 120 commits is the first bad one"
    assert lines[2] == f"  T{why[1:]}." and "goes on where it is with: firstbad extend" in lines[3]
    shown = [line for line in lines if "Change number" in line and line.startswith("  ")]
    assert [line.split()[0] for line in shown] == [sha(n)[:10] for n in (*range(1, 6), *range(116, 121))]
    (gap,) = [line for line in lines if "between" in line]
    assert gap.strip().startswith("… and 110 between")


def test_a_log_is_printed_as_it_is(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    text = b"\x1b[31mred\x1b[0m \xff\x00\r\n" * 5000
    flow.judge(flow.plan(id, 3), Verdict.GOOD, "script passed", text)
    process = terminal.start("logs", f"{id[:4]}.5")
    assert process.communicate(timeout=60) == (text, b"")
    assert process.returncode == 0


def test_a_log_is_asked_for_by_probe(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    done = terminal.run("logs", id)
    assert done.status == 2
    assert f"{id}.1, {id}.2, {id}.3, {id}.4" in done.err
    assert terminal.run("logs", f"{id}.9").err.startswith("firstbad: there is no probe")


def test_the_log_of_a_build_is_asked_for_by_its_probe(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    flow.build(flow.probe(f"{id}.4"), BuildState.FAILED, b"a.c:1: error\n")
    done = terminal.run("logs", f"{id[:4]}.4", "--build")
    assert (done.status, done.out) == (0, "a.c:1: error\n")
    none = terminal.run("logs", f"{id}.1", "--build")
    assert (none.status, none.err.splitlines()[0]) == (2, f"firstbad: no wheel was built for the probe {id}.1")
    flow.build(flow.probe(f"{id}.3"), BuildState.RUNNING, None)
    assert "is running" in terminal.run("logs", f"{id}.3", "--build").err


def test_builds_are_listed_with_how_they_came_about_and_why_not_cheaper(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    assert "Builds" not in terminal.run("show", id, "--probes").out
    note = "no overlay of the wheel of 1234: setup.py differs"
    flow.build(flow.probe(f"{id}.1"), BuildState.BUILT, origin=Origin.OVERLAY, seconds=0.4)
    flow.build(flow.probe(f"{id}.2"), BuildState.BUILT, origin=Origin.BUILT, seconds=90.0, notes=(note, "again"))
    flow.build(flow.probe(f"{id}.3"), BuildState.FAILED, seconds=3.0)
    flow.build(flow.probe(f"{id}.4"), BuildState.WAITING, None, ahead=True)
    lines = terminal.run("show", id, "--probes").out.splitlines()
    told = [line.split(maxsplit=1) for line in lines[lines.index("Builds") + 2 :]]
    assert [first for first, *_ in told] == [sha(8)[:10], sha(0)[:10], "again", sha(4)[:10], sha(5)[:10]]
    hows = [rest[0].split("  ")[0] for first, *rest in told if rest]
    assert hows == ["overlay", "built", "does not build", "waiting, ahead"]
    assert told[1][1].endswith(note)
    as_json = json.loads(terminal.run("show", id, "--probes", "--json").out)
    assert [build["origin"] for build in as_json["builds"]] == ["overlay", "built", None, None]


def test_a_reader_that_has_had_enough_gets_no_complaint(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    flow.judge(flow.plan(id, 3), Verdict.GOOD, "script passed", b"line\n" * 1_000_000)
    process = terminal.start("logs", f"{id}.5")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", 0)
    process.stderr.close()


def test_cancelling_says_so(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    done = terminal.run("cancel", id)
    assert (done.status, done.out) == (0, f"Bisection {id} is cancelled.\n")
    assert flow.bisection(id).state == "cancelled"
    again = terminal.run("cancel", ended(flow, BisectionState.FOUND))
    assert (again.status, len(again.err.splitlines())) == (2, 2)


def test_probes_are_shown_with_the_line_that_failed_and_the_faults_of_nodes(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    probe = flow.probe(f"{id}.4")
    assert probe.outcome is not None
    signature = Signature("python", "ValueError", "x", line=12, said="(Worker pid=7) ValueError: x\x1b[31m")
    faults = (Fault("no-gpu", "no card is free", node="node-7"), Fault("lost", "the lease ran out"))
    flow.tried[probe.id] = replace(probe, outcome=replace(probe.outcome, signature=signature), faults=faults)
    lines = [line.strip() for line in terminal.run("show", id, "--probes").out.splitlines()]
    assert lines[-3:] == [
        "line 12: (Worker pid=7) ValueError: x\N{REPLACEMENT CHARACTER}[31m",
        "fault on node-7: no card is free",
        "fault: the lease ran out",
    ]


def test_nodes_are_listed_with_their_gpus_and_why_one_is_out(terminal: Terminal, flow: FakeFlow) -> None:
    gpus = tuple(Gpu(index, "NVIDIA H100", "nvidia-h100", 85_520_809_984) for index in range(8))
    (node,) = flow.machines
    flow.machines = (node, replace(node, name="node-2", gpus=gpus, out="NVLink error\nmore"))
    out = terminal.run("nodes").out.splitlines()
    assert [line.split()[:2] for line in out] == [["NODE", "STATE"], ["node-1", "alive"], ["node-2", "out"]]
    assert out[2].endswith("8 × NVIDIA H100, 79 GiB  NVLink error")
    assert [one["name"] for one in json.loads(terminal.run("nodes", "--json").out)] == ["node-1", "node-2"]
    flow.machines = ()
    assert terminal.run("nodes").err.startswith("No node has reported yet")


def test_a_node_that_was_taken_out_is_brought_back_by_its_name(terminal: Terminal, flow: FakeFlow) -> None:
    flow.machines = (replace(flow.machines[0], out="NVLink error"),)
    done = terminal.run("nodes", "--return", "node-1")
    assert (done.status, done.out) == (0, "node-1 gets probes again.\n")
    assert flow.machines[0].out == ""
    assert json.loads(terminal.run("nodes", "--return", "node-1", "--json").out)["name"] == "node-1"
    unknown = terminal.run("nodes", "--return", "node-9")
    assert (unknown.status, unknown.err.splitlines()[0]) == (2, "firstbad: there is no node 'node-9'")


def test_judging_again_tells_the_verdicts_that_changed(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    assert terminal.run("judge", id[:4]).out == f"No verdict of {id} has changed.\n"
    flow.judged_again = (flow.probe(f"{id}.2"),)
    lines = terminal.run("judge", id).out.splitlines()
    assert lines[0] == f"1 verdict of {id} changed; it goes on if its answer does not stand."
    assert lines[2].split()[:3] == [f"{id}.2", sha(0)[:10], "good"]
    assert [one["id"] for one in json.loads(terminal.run("judge", id, "--json").out)] == [f"{id}.2"]


def test_every_command_has_help_and_the_exit_statuses_are_told(terminal: Terminal) -> None:
    helped = terminal.run("--help")
    assert helped.status == 0
    assert "130 interrupted" in helped.out
    for command in ("up", "submit", "watch", "show", "list", "logs", "cancel", "nodes", "judge"):
        assert command in helped.out
        assert terminal.run(command, "--help").status == 0


def test_a_mistyped_command_is_told_the_nearest(terminal: Terminal) -> None:
    done = terminal.run("sbmit")
    assert (done.status, "submit" in done.err, len(done.err.splitlines())) == (2, True, 2)


def test_without_a_service_the_next_step_is_told(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for arguments in (["list"], ["show", "x"], ["watch", "x"], ["logs", "x.1"], ["cancel", "x"]):
        done = terminal.run(*arguments, "--url", url)
        assert (done.status, done.out) == (3, "")
        assert done.err.splitlines() == [
            f"firstbad: no firstbad answers at {url}",
            f"  start it with: firstbad up --port {url.rpartition(':')[2]}",
        ]


def test_a_password_in_the_url_is_not_told(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
    done = terminal.run("list", "--url", f"http://user:pa55word@{place}")
    assert done.err.splitlines()[0] == f"firstbad: no firstbad answers at http://user:***@{place}"


@pytest.mark.parametrize("url", ["", "localhost:8377", "ftp://127.0.0.1", "http://", "http://[", "http://\x01", "x y"])
def test_what_is_no_url_is_told(terminal: Terminal, url: str) -> None:
    done = terminal.run("list", "--url", url)
    assert (done.status, done.out, len(done.err.splitlines())) == (3, "", 2)


def test_another_service_is_not_taken_for_ours(terminal: Terminal) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if "limit=20" in self.path else 404)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{other.server_port}"
        answers = [terminal.run("list", "--url", url), terminal.run("show", "x", "--url", url)]
        other.shutdown()
        thread.join()
    for done in answers:
        assert done.status == 3
        assert done.err.splitlines()[1] == "  check the URL: --url or FIRSTBAD_URL"


def test_text_of_others_cannot_move_the_cursor_or_pretend(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.history[sha(5)] = commit(5, "\x1b[2J[bold]fine[/bold] :smile: \u202etxt\r\n\x07")
    flow.find(id, 5)
    out = terminal.run("show", id).out
    assert "[bold]fine[/bold] :smile:" in out
    assert not {"\x1b", "\u202e", "\r", "\x07"} & set(out)


def in_terminal(terminal: Terminal, *arguments: str) -> tuple[int, str]:
    """The status and what a terminal would get."""
    master, slave = pty.openpty()
    process = terminal.start(*arguments, stdout=slave, stderr=slave)
    os.close(slave)
    seen = bytearray()
    try:
        while piece := os.read(master, 65536):
            seen += piece
    except OSError:
        pass  # the other end is closed: how Linux ends a terminal
    os.close(master)
    return process.wait(60), seen.decode()


def test_a_terminal_gets_colours_unless_told_otherwise(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    assert "\x1b[1;32m" in in_terminal(terminal, "show", id)[1]
    plain = in_terminal(terminal.with_env(NO_COLOR="1"), "show", id)[1]
    assert not any(f"\x1b[{code}m" in plain for code in ("1;32", "32", "31", "36"))


def test_a_log_in_a_terminal_keeps_its_colours_and_nothing_else(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    flow.judge(flow.plan(id, 3), Verdict.GOOD, "script passed", b"\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07 end\n")
    status, seen = in_terminal(terminal, "logs", f"{id}.5")
    assert status == 0
    assert "\x1b[31mred\x1b[0m" in seen
    assert "\x1b[2J" not in seen and "\x1b]0" not in seen and "\x07" not in seen


def test_up_on_a_port_in_use_says_so(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = terminal.run("up", "--home", str(terminal.folder / "home"), "--port", port)
    assert (done.status, done.out) == (3, "")
    assert done.err.startswith(f"firstbad: port {port} of 127.0.0.1: ")


def test_up_with_a_setting_that_cannot_be_used_names_it(terminal: Terminal) -> None:
    done = terminal.with_env(FIRSTBAD_SWEEP_S="often").run("up", "--home", str(terminal.folder / "home"))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("firstbad: FIRSTBAD_SWEEP_S: ")


def test_what_up_takes_for_granted_is_what_the_settings_do() -> None:
    defaults = {name: given.default for name, given in inspect.signature(up).parameters.items()}
    del defaults["as_json"]
    assert defaults == {name: Settings.model_fields[name].default for name in defaults}


def test_up_in_a_folder_that_cannot_be_made_says_so(terminal: Terminal) -> None:
    (terminal.folder / "file").write_text("")
    done = terminal.run("up", "--home", str(terminal.folder / "file" / "home"), "--port", "0")
    assert (done.status, done.out, len(done.err.splitlines())) == (3, "", 1)
    assert str(terminal.folder / "file") in done.err


def test_a_full_disk_is_told_without_a_traceback(terminal: Terminal, flow: FakeFlow) -> None:
    id = ended(flow, BisectionState.FOUND)
    for arguments in (["show", id], ["list", "--json"], ["logs", f"{id}.1"]):
        with Path("/dev/full").open("wb") as full:
            process = terminal.start(*arguments, stdout=full)
            assert process.communicate(timeout=60)[1] == b"firstbad: standard output: no space left on device\n"
            assert process.returncode == 3


def test_a_terminal_that_knows_few_letters_gets_what_it_can_show(terminal: Terminal, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.history[sha(5)] = commit(5, "Sch\N{LATIN SMALL LETTER O WITH DIAERESIS}n")
    flow.find(id, 5)
    process = terminal.with_env(PYTHONIOENCODING="ascii").start("show", id)
    out, err = process.communicate(timeout=60)
    assert (b"Sch?n" in out, err, process.returncode) == (True, b"", 0)


def test_the_version_is_printed(terminal: Terminal) -> None:
    assert terminal.run("--version").out == f"firstbad {version('firstbad')}\n"


def test_no_command_prints_the_help(terminal: Terminal) -> None:
    done = terminal.run()
    assert "Usage: firstbad" in done.out + done.err
    assert subprocess.list2cmdline(["firstbad"]) in done.out + done.err
