"""The worker as its own process, between a real Redis and real sandboxes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.worker.bench import Bench, running
from tests.worker.node import Node
from worker.contract import (
    AHEAD,
    ProbeOrder,
    Queue,
    Task,
    cancel_key,
    lease_key,
    taken_key,
)
from worker.run.machine import hardware


def test_a_node_says_when_it_comes_what_it_can_and_when_it_leaves(node: Node) -> None:
    node.start()
    booted = node.next(Task.NODE, event="booted")
    assert booted["slots"] == 1
    assert "pid" in booted["facts"]["process.isolation"]
    assert booted["facts"]["hardware"] == hardware()
    assert node.end() == 0
    assert node.next(Task.NODE, event="left")["node"] == "node-1"


def test_settings_that_are_wrong_are_told_a_line_each(node: Node) -> None:
    wrong = {"ROLES": "built,run", "SLOTS": "many", "REDIS_URL": "amqp://me:geheim@host", "COMPILER_CACHE": "all"}
    node.settings.update({f"FIRSTBAD_{name}": value for name, value in wrong.items()})
    node.start()
    assert node.process is not None and node.process.wait(30.0) == 2
    lines = sorted(line.removeprefix("firstbad worker: ") for line in node.log.read_text().splitlines())
    assert [line.partition(":")[0].removeprefix("FIRSTBAD_") for line in lines] == sorted(wrong)
    assert lines[2] == "FIRSTBAD_ROLES: 'built' is no role; known are build, run"
    for line, said in zip(lines, ("like 500M or 5G", "like redis://", "'built'", "'many'"), strict=True):
        assert said in line
    assert "geheim" not in str(lines)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FIRSTBAD_ROLES", "", "is no role; known are build, run"),
        ("FIRSTBAD_WORK_DIR", "/proc/none", "FIRSTBAD_WORK_DIR: '/proc/none' cannot be used"),
        ("FIRSTBAD_STORE_URL", "gs://bucket/x", "gs://bucket/x cannot be used: Please install gcsfs"),
    ],
)
def test_a_worker_that_cannot_start_says_why_in_one_line(node: Node, name: str, value: str, said: str) -> None:
    node.settings[name] = value
    node.start()
    assert node.process is not None and node.process.wait(30.0) == 2
    (line,) = node.log.read_text().splitlines()
    assert said in line


def test_a_node_whose_store_cannot_be_written_says_so_until_it_can(node: Node, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    node.settings["FIRSTBAD_STORE_URL"] = str(small_disk / "store")
    node.start()
    booted = node.next(Task.NODE, event="booted")
    assert "Read-only" in booted["facts"]["store.fault"] and "writable" in booted["facts"]["store.fault"]
    assert "Read-only" in node.log.read_text()
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert node.end() == 0
    assert "store.fault" not in node.next(Task.NODE, event="left")["facts"]


def test_an_order_that_was_cancelled_in_the_queue_is_dropped(node: Node, process_bench: Bench) -> None:
    dropped, last = process_bench.order("true"), process_bench.order("true")
    node.broker.client().set(cancel_key("probe", dropped.probe, 1), "1")
    node.send(dropped)
    node.send(last)
    node.ready()
    node.result(last.probe)
    assert not [each for _, each in node.heard if dropped.probe in each.values()]


def test_a_worker_that_cannot_read_a_message_ends_and_its_exit_status_says_so(node: Node, process_bench: Bench) -> None:
    node.settings["FIRSTBAD_SLOTS"] = "2"
    node.ready()
    first, waiting = process_bench.order("until test -e go; do sleep 0.1; done"), process_bench.order("true")
    node.send(first)
    node.next(Task.STARTED)
    node.broker.client().lpush(Queue.PROBE, "no JSON")
    eventually(lambda: not node.broker.client().exists(Queue.PROBE))
    node.send(waiting)
    node.go(first)
    assert node.process is not None and node.process.wait(30.0) != 0
    # What ran is told of, and what waited is done by the worker that is started in its place.
    assert node.result(first.probe).outcome is not None
    node.ready()
    assert node.result(waiting.probe).outcome is not None


def test_a_worker_that_is_told_to_stop_reports_what_it_broke_off(node: Node, process_bench: Bench) -> None:
    node.ready()
    marker = f"3600.{os.getpid()}7"
    order = process_bench.order(f"trap '' TERM; setsid sleep {marker} & sleep {marker}")
    node.send(order)
    eventually(lambda: len(running(marker)) == 2)
    assert node.end(seconds=10.0) == 0
    fault = node.result(order.probe).fault
    assert fault is not None and fault.kind == "stopped"
    assert running(marker) == []
    assert list((node.work_dir / "jobs").iterdir()) == []


def test_nothing_survives_a_worker_that_is_killed(node: Node, process_bench: Bench) -> None:
    node.ready()
    marker = f"3600.{os.getpid()}8"
    order = process_bench.order(f"setsid sleep {marker} & sleep {marker}")
    node.send(order)
    eventually(lambda: len(running(marker)) == 2)
    node.end(signal.SIGKILL)
    eventually(lambda: not running(marker))
    assert list((node.work_dir / "jobs").iterdir()) != []
    node.ready()
    assert list((node.work_dir / "jobs").iterdir()) == []


def test_a_worker_ends_with_its_parent(node: Node, process_bench: Bench) -> None:
    reader, writer = os.pipe()
    node.settings["FIRSTBAD_PARENT_FD"] = str(reader)
    node.start(pass_fds=(reader,))
    node.next(Task.NODE, event="booted")
    os.close(reader)
    os.close(writer)
    assert node.process is not None
    assert node.process.wait(30.0) == 0


def test_a_second_worker_in_the_same_folder_is_refused(node: Node, tmp_path: Path) -> None:
    node.ready()
    second = Node(node.broker, node.work_dir, tmp_path / "second.log")
    second.start()
    assert second.process is not None and second.process.wait(30.0) == 2
    assert "another worker works in" in second.log.read_text()


def test_a_run_of_30_s_is_begun_once_where_the_broker_s_time_out_is_5_s(node: Node, process_bench: Bench) -> None:
    """The broker looks every 10 s for what was not acknowledged. Two slots: one is free for a second delivery."""
    node.module, node.settings["FIRSTBAD_SLOTS"] = "tests.worker.impatient", "2"
    order = process_bench.order("sleep 30")
    node.ready()
    node.send(order)
    outcome = node.result(order.probe).outcome
    assert outcome is not None and outcome.exit_status == 0
    assert node.end() == 0
    told = [line for line in node.log.read_text().splitlines() if f"Task {Task.PROBE}[" in line]
    assert len([line for line in told if "received" in line]) == 1, told


def test_a_lease_is_there_again_after_redis_has_forgotten_it(node: Node, process_bench: Bench) -> None:
    node.ready()
    order = process_bench.order("until test -e go; do sleep 0.1; done")
    node.send(order)
    node.next(Task.STARTED)
    key = lease_key("probe", order.probe, 1)
    assert 0 < node.broker.client().ttl(key) <= 30
    node.broker.client().flushall()
    eventually(lambda: node.broker.client().exists(key))
    node.broker.stop()
    node.broker.start()
    eventually(lambda: node.broker.client().exists(key))
    node.go(order)
    assert node.result(order.probe).outcome is not None


def test_a_result_waits_on_disk_for_redis_and_outlives_the_worker(node: Node, process_bench: Bench) -> None:
    node.ready()
    order = process_bench.order("until test -e go; do sleep 0.1; done; echo precious")
    node.send(order)
    node.next(Task.STARTED)
    node.broker.stop()
    node.go(order)
    eventually(lambda: list((node.work_dir / "outgoing").glob("*.json")))
    node.end(signal.SIGKILL)
    node.broker.start()
    node.start()
    result = node.result(order.probe)
    assert result.outcome is not None and result.outcome.log is not None
    assert result.outcome.log.last_lines == ("precious",)
    eventually(lambda: not list((node.work_dir / "outgoing").iterdir()))


def test_a_result_is_sent_late_by_the_same_worker(node: Node, process_bench: Bench) -> None:
    node.ready()
    order = process_bench.order("until test -e go; do sleep 0.1; done")
    node.send(order)
    node.next(Task.STARTED)
    node.broker.stop()
    node.go(order)
    eventually(lambda: list((node.work_dir / "outgoing").glob("*.json")))
    node.broker.start()
    assert node.result(order.probe).outcome is not None
    again = process_bench.order("true")
    node.send(again)
    assert node.result(again.probe).outcome is not None
    node.next(Task.NODE, event="alive")
    # A connection that is back is no new start, which would tell the service that nothing runs here.
    assert not [each for task, each in node.heard if task == Task.NODE and each["event"] == "booted"]


def test_a_worker_can_be_stopped_while_redis_is_away(node: Node) -> None:
    node.ready()
    node.broker.stop()
    assert node.end(seconds=20.0) in (0, 1)


def test_as_many_run_at_once_as_there_are_slots(node: Node, process_bench: Bench) -> None:
    node.settings["FIRSTBAD_SLOTS"] = "2"
    node.ready()
    marker = f"3600.{os.getpid()}9"
    orders = [process_bench.order(f"sleep {marker}") for _ in range(4)]
    for order in orders:
        node.send(order)
    eventually(lambda: len(running(marker)) == 2)
    client = node.broker.client()
    eventually(lambda: client.llen(Queue.PROBE) == 2)
    taken = [order for order in orders if client.exists(taken_key("probe", order.probe, 1))]
    assert len(taken) == 2
    # An order that waits stays in the queue, where another node can take it.
    assert len(running(marker)) == 2


def test_an_engine_that_is_down_is_a_fault_with_advice(node: Node, process_bench: Bench) -> None:
    node.settings.update(FIRSTBAD_SANDBOXES="process,docker", FIRSTBAD_DOCKER_HOST=f"unix://{node.work_dir}/none.sock")
    node.start()
    booted = node.next(Task.NODE, event="booted")
    assert "cannot be reached" in booted["facts"]["docker.fault"]
    order = process_bench.order("true").model_dump(mode="json")
    order["sandbox"] = {"kind": "docker", "image": "any", "network": "none"}
    node.send(ProbeOrder.model_validate(order))
    fault = node.result(order["probe"]).fault
    assert fault is not None and fault.kind == "engine" and fault.advice


@pytest.mark.parametrize(("role", "other"), [("build", Queue.PROBE), ("run", Queue.BUILD)])
def test_a_node_does_only_what_its_role_is(node: Node, process_bench: Bench, role: str, other: Queue) -> None:
    node.settings["FIRSTBAD_ROLES"] = role
    node.start()
    assert node.next(Task.NODE, event="booted")["roles"] == [role]
    probe = process_bench.order("true")
    node.send(probe)
    node.send_build(process_bench, "k1")
    if role == "build":
        node.next(Task.BUILT, key="k1")
    else:
        node.next(Task.PROBED, probe=probe.probe)
    # Two heartbeats later the other order still lies in its queue.
    node.next(Task.NODE, event="alive")
    node.next(Task.NODE, event="alive")
    assert node.broker.client().llen(other) == 1
    assert [each["kind"] for task, each in node.heard if task == Task.STARTED] == [
        "build" if role == "build" else "probe"
    ]


def test_what_is_made_ahead_waits_for_all_that_somebody_waits_for(node: Node, process_bench: Bench) -> None:
    node.ready()
    first = process_bench.order("until test -e go; do sleep 0.1; done")
    node.send(first)
    node.next(Task.STARTED, id=first.probe)
    probes = [process_bench.order("true") for _ in range(3)]
    for key in ("ahead-1", "ahead-2"):
        node.send_build(process_bench, key, AHEAD)
    for number, probe in enumerate(probes):
        node.send(probe)
        node.send_build(process_bench, f"now-{number}")
    node.send_build(process_bench, "ahead-3", AHEAD)
    node.go(first)
    node.next(Task.BUILT, key="ahead-3")
    started = [each["id"] for task, each in node.heard if task == Task.STARTED]
    assert set(started[:6]) == {"now-0", "now-1", "now-2", *(probe.probe for probe in probes)}
    assert started[6:] == ["ahead-1", "ahead-2", "ahead-3"]
    # Neither of the two queues waits until the other is empty.
    assert started[:6] != sorted(started[:6], key=lambda id: id.startswith("now"))
    assert started[:6] != sorted(started[:6], key=lambda id: not id.startswith("now"))


def test_a_worker_that_started_before_redis_says_once_that_it_came(node: Node, process_bench: Bench) -> None:
    node.broker.stop()
    node.start()
    eventually(lambda: node.log.exists() and "leases may pass" in node.log.read_text())
    node.broker.start()
    assert node.next(Task.NODE, event="booted")["adopted"] == []
    order = process_bench.order("true")
    node.send(order)
    assert node.result(order.probe).outcome is not None
    node.next(Task.NODE, event="alive")
    assert not [each for task, each in node.heard if task == Task.NODE and each["event"] == "booted"]
