"""The process sandbox where bubblewrap is missing: weaker, and it says so."""

from __future__ import annotations

import dataclasses
import os
import socket
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import SERVER, Background, Bench, running
from tests.worker.conftest import pipeline
from worker.contract import Sandbox, Serve
from worker.pipeline import Pipeline
from worker.run.cgroups import Groups
from worker.run.job import install_inside
from worker.run.process import ProcessSandbox
from worker.run.stop import CANCELLED
from worker.run.view import View


@pytest.fixture(params=["unshare", "plain"])
def weak(request: pytest.FixtureRequest, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    tools = {"unshare": ("unshare",), "plain": ()}[request.param]
    for tool in tools:
        needs(tool)
    made = pipeline(tmp_path)
    sandbox = ProcessSandbox(made.site.work_dir, install_inside(made.site.work_dir), View(), 65534, tools)
    return Bench(
        Pipeline(dataclasses.replace(made.site, sandboxes={"process": sandbox})), *repository, Sandbox(kind="process")
    )


def isolated(bench: Bench, name: str) -> bool:
    facts = bench.pipeline.site.sandboxes["process"].facts()
    assert (name in facts["isolation"].split(",")) != (name in facts["not_isolated"].split(","))
    return name in facts["isolation"].split(",")


def test_what_is_not_isolated_is_said(weak: Bench) -> None:
    assert not isolated(weak, "mount")
    assert weak.outcome("true").environment["not_isolated"] != "none"


@pytest.mark.parametrize("status", [0, 1, 125, 127])
def test_the_exit_status_is_the_scripts_own(weak: Bench, status: int) -> None:
    assert weak.outcome(f"cat hello.txt; exit {status}").exit_status == status


def test_a_run_over_its_time_is_killed_whole(weak: Bench) -> None:
    marker = f"3601.{os.getpid()}1"
    outcome = weak.outcome(f"trap '' TERM\nsleep {marker} & sleep {marker}", limits={"timeout_s": 1.5})
    assert outcome.timed_out and outcome.ended_in == "script"
    assert running(marker) == []


def test_what_forks_away_neither_holds_the_run_up_nor_survives(weak: Bench) -> None:
    marker = f"3601.{os.getpid()}2"
    outcome = weak.outcome(f"setsid bash -c '(setsid sleep {marker} &) ; sleep {marker}; true' & disown\necho done")
    assert (outcome.exit_status, weak.text(outcome)) == (0, ["done"])
    assert running(marker) == []


def test_a_cancelled_run_is_gone(weak: Bench) -> None:
    marker = f"3601.{os.getpid()}3"
    probe = Background(weak, weak.order(f"trap '' TERM; setsid sleep {marker} & sleep {marker}"))
    eventually(lambda: len(running(marker)) == 2)
    probe.stop.press(CANCELLED)
    assert probe.finished(10.0) is None
    assert running(marker) == []
    assert weak.left() == []


def test_a_script_that_ends_its_supervisor_leaves_nothing(weak: Bench) -> None:
    needs("root")  # control groups do
    marker = f"3601.{os.getpid()}4"
    result = weak.probe(f"setsid sleep {marker} & kill -9 $PPID; sleep {marker}", limits={"timeout_s": 5.0})
    assert (result.outcome is not None) == isolated(weak, "pid")
    assert running(marker) == []


def test_only_the_control_groups_that_this_worker_left_are_removed() -> None:
    needs("root")  # control groups do
    worker, other = f"{os.getpid()}a", f"{os.getpid()}b"
    groups = Groups(worker)
    with groups.one(10, None, None) as group:
        assert group is not None
    Groups(other).remove_leftovers()
    assert all(folder.exists() for folder in group.folders.values())
    Groups(worker).remove_leftovers()
    assert not any(folder.exists() for folder in group.folders.values())


def test_two_servers_at_once_get_along(weak: Bench) -> None:
    check = "until test -e go; do sleep 0.05; done; echo port $FIRSTBAD_PORT"
    orders = [weak.order(serve=Serve(command=SERVER, within_s=60, ready_http="/"), check=check) for _ in range(2)]
    probes = [Background(weak, order) for order in orders]
    logs = [weak.job(order.probe) / "out" / "log" for order in orders]
    eventually(lambda: all(log.exists() and b"GET / HTTP" in log.read_bytes() for log in logs))
    for order in orders:
        (weak.job(order.probe) / "work" / "tree" / "go").touch()
    found = [probe.finished() for probe in probes]
    ports = [result.outcome.log.last_lines[-1] for result in found if result is not None and result.outcome is not None]
    assert len(ports) == 2
    assert (ports[0] == ports[1]) == isolated(weak, "net")
    assert [f"port {result.outcome.environment['port']}" for result in found] == ports


def test_a_built_wheel_is_installed_and_run(weak: Bench) -> None:
    built = weak.build()
    assert built.wheel is not None, built
    outcome = weak.outcome("tinypkg", wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)
    assert outcome.log.last_lines[-1] == "tinypkg says hello"


def test_a_port_that_is_taken_is_another(weak: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = weak.serve(spec={"port": port}, check="echo $FIRSTBAD_PORT $FIRSTBAD_URL")
    assert outcome.exit_status == 0
    said = outcome.log.last_lines[-1].split()
    assert said == [outcome.environment["port"], f"http://127.0.0.1:{outcome.environment['port']}"]
    assert (said[0] == str(port)) == isolated(weak, "net")


def test_runs_for_warmup_and_bound_to_cpus_work_here_too(weak: Bench) -> None:
    outcome = weak.outcome("echo x >> runs; nproc; cat runs", warmup=1, limits={"cpuset": "0"})
    assert weak.text(outcome)[-3:] == ["1", "x", "x"] and outcome.ended_in == "script"
    assert outcome.environment["cpus_allowed"] == "0"
