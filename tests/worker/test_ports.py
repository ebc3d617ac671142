"""Servers that share the node's network, where a port may be another's."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.worker.bench import SERVER, Background, Bench
from worker.contract import ProbeOrder, Serve
from worker.errors import NodeFault
from worker.run import job as jobs
from worker.run import ports
from worker.run.stop import CANCELLED, Stop


@pytest.fixture
def port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])


def literal(bench: Bench, port: int, **changed: object) -> ProbeOrder:
    """Nobody connects to its server, so that it leaves no connection behind."""
    command = f"echo begun; exec python3 -u -m http.server --bind 127.0.0.1 {port}"
    serve = Serve(**{"command": command, "within_s": 30.0, "ready_log": "Serving HTTP", "port": port, **changed})
    return bench.order(serve=serve, check="until test -e go; do sleep 0.05; done", network="bridge")


def begun(bench: Bench, order: ProbeOrder, text: bytes = b"Serving HTTP") -> bool:
    log = bench.job(order.probe) / "out" / "log"
    return log.exists() and text in log.read_bytes()


def go(bench: Bench, order: ProbeOrder) -> None:
    (bench.job(order.probe) / "work" / "tree" / "go").touch()


def fault(bench: Bench, order: ProbeOrder) -> tuple[str, str]:
    result = bench.pipeline.probe(order, Stop())
    assert result is not None and result.fault is not None, result
    return result.fault.kind, result.fault.message


def test_a_port_that_something_else_has_is_never_the_commits_failure(process_bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert fault(process_bench, literal(process_bench, port)) == (
            "no-port",
            f"port {port} of this node is taken by something else",
        )


def test_a_check_that_names_the_port_itself_does_not_reach_another_server(process_bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serve = Serve(command=SERVER, within_s=30.0, ready_http="/", port=port)
        order = process_bench.order(serve=serve, check=f"curl http://127.0.0.1:{port}", network="bridge")
        assert fault(process_bench, order)[0] == "no-port"


@pytest.mark.parametrize("check", [None, "echo $FIRSTBAD_URL", "echo $FIRSTBAD_PORT"])
def test_a_server_that_goes_where_it_is_told_gets_another_port(process_bench: Bench, check: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = process_bench.serve(spec={"port": port}, check=check, network="bridge")
    assert outcome.ready and outcome.environment["port"] != str(port)


def test_two_servers_with_one_port_take_turns(process_bench: Bench, port: int) -> None:
    first = Background(process_bench, literal(process_bench, port))
    eventually(lambda: begun(process_bench, first.order))
    second = Background(process_bench, literal(process_bench, port))
    eventually(lambda: (process_bench.job(second.order.probe) / "in" / "tree.tar").exists())
    assert not begun(process_bench, second.order, b"begun")
    go(process_bench, first.order)
    eventually(lambda: begun(process_bench, second.order))
    go(process_bench, second.order)
    for result in (first.finished(), second.finished()):
        assert result is not None and result.outcome is not None
        assert (result.outcome.exit_status, result.outcome.ready) == (0, True)


def test_a_run_that_waits_for_its_port_can_be_cancelled(process_bench: Bench, port: int) -> None:
    with ports.one(port, Stop(), movable=False, wait_s=0.0):
        probe = Background(process_bench, literal(process_bench, port))
        eventually(lambda: (process_bench.job(probe.order.probe) / "in" / "tree.tar").exists())
        probe.stop.press(CANCELLED)
        assert probe.finished(10.0) is None
    assert process_bench.left() == []


def test_a_port_that_other_runs_hold_for_too_long_is_a_fault(port: int) -> None:
    with (
        ports.one(port, Stop(), movable=False, wait_s=0.0),
        pytest.raises(NodeFault, match=f"port {port} of this node is used by other runs"),
        ports.one(port, Stop(), movable=False, wait_s=0.0),
    ):
        raise AssertionError("two have it")


def test_a_run_during_which_another_server_came_is_a_fault(process_bench: Bench, port: int) -> None:
    command = "echo begun; until test -e go; do sleep 0.05; done; exit 1"
    probe = Background(process_bench, literal(process_bench, port, command=command))
    eventually(lambda: begun(process_bench, probe.order, b"begun"))
    with socket.create_server(("127.0.0.1", port)):
        go(process_bench, probe.order)
        result = probe.finished()
    assert result is not None and result.fault is not None and result.fault.kind == "no-port"


def test_what_listens_before_the_server_starts_is_not_taken_for_it(tmp_path: Path) -> None:
    job = jobs.create(tmp_path, "job", None)
    (job.root / "inside").symlink_to(jobs.install_inside(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        serve = {"command": "sleep 600", "within_s": 20.0, "ready_http": "/", "port": taken.getsockname()[1]}
        order = {"serve": serve, "offline": False, "timeout_s": 30.0, "log_cap_bytes": 4096, "env": {"PATH": "/bin"}}
        (job.inputs / "order.json").write_text(json.dumps(order))
        subprocess.run([sys.executable, *jobs.command(str(job.root))], check=True, stdin=subprocess.DEVNULL)
    outcome = jobs.read_outcome(job)
    assert outcome is not None and outcome.fault is not None and outcome.fault["kind"] == "no-port"
