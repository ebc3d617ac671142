"""What workers send, as the control worker passes it to the flow; other versions and strangers included."""

from __future__ import annotations

import math
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from celery import Celery

from service import inbox
from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.adapters.git_history import GitHistory
from service.adapters.probe_queue import CeleryQueue
from service.application.flow import Flow
from service.domain.lifecycle import BisectionState, ProbeState
from tests.application.conftest import World
from tests.application.native import submit
from tests.redis_server import Broker
from tests.waiting import eventually
from worker import contract
from worker.contract import Task


def told(message: contract.Message) -> dict:
    return message.model_dump(mode="json")


def outcome(status: int) -> contract.Outcome:
    log = contract.Log(path="logs/x", bytes=5, last_lines=("said",))
    phase = contract.Phase(name="script", at_s=0.1, seconds=0.2)
    return contract.Outcome(exit_status=status, ended_in="script", phases=(phase,), log=log, environment={"a": "b"})


def test_messages_of_a_whole_bisection(world: World) -> None:
    id = world.submit(project="python").id
    world.workers.prepare(world.flow)
    truth = world.truth(13)
    while world.workers.builds or world.workers.probes:
        if world.workers.builds:
            order = world.workers.builds.pop(0)
            wheel = contract.Wheel(name="p.whl", path="wheels/p.whl", bytes=1, sha256="0")
            result = contract.BuildResult(key=order.key, attempt=order.attempt, node="n", seconds=1.0, wheel=wheel)
            inbox.built(world.flow, told(result))
            continue
        probe = world.workers.probes.pop(0)
        started = contract.Started(kind="probe", id=probe.probe, attempt=probe.attempt, node="n")
        inbox.started(world.flow, told(started))
        assert world.flow.probe(probe.probe).leased_at is None
        inbox.started(world.flow, told(started.model_copy(update={"leased": True})))
        assert world.flow.probe(probe.probe).leased_at is not None
        answer = contract.ProbeResult(
            probe=probe.probe, attempt=probe.attempt, node="n", outcome=outcome(truth(probe.source.sha))
        )
        inbox.probed(world.flow, told(answer))
    found = world.flow.bisection(id)
    assert found.answer is not None
    assert found.answer.shas == (world.shas[13],)
    kept = world.flow.probes(id)[0].outcome
    assert kept is not None
    assert kept.log is not None
    assert (kept.phases[0].seconds, kept.log.last_lines, kept.environment) == (0.2, ("said",), {"a": "b"})


def test_an_answer_of_another_version_is_a_fault_that_says_so(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.probes.pop()
    answer = {"version": 99, "probe": order.probe, "attempt": order.attempt, "node": "n7", "verdict": "bad"}
    inbox.probed(world.flow, answer)
    probe = world.flow.probe(order.probe)
    assert (probe.state, probe.attempt, probe.faults[0].kind) == (ProbeState.QUEUED, 2, "version")
    assert "n7" in probe.faults[0].message
    assert "99" in probe.faults[0].message


def test_a_build_of_another_version_is_a_fault_too(world: World) -> None:
    world.submit(project="python")
    world.workers.prepare(world.flow)
    order = world.workers.builds.pop()
    inbox.built(world.flow, {"version": 99, "key": order.key, "attempt": order.attempt, "node": "n7"})
    world.wait_for_retry()
    assert world.workers.builds[0].attempt == 2


def test_a_report_about_something_unknown_is_dropped(world: World) -> None:
    inbox.probed(world.flow, told(contract.ProbeResult(probe="bnone.1", attempt=1, node="n", outcome=outcome(1))))
    inbox.started(world.flow, told(contract.Started(kind="probe", id="bnone.1", attempt=1, node="n")))
    inbox.built(world.flow, told(contract.BuildResult(key="none", attempt=1, node="n", seconds=1.0)))


def test_nodes_are_kept_with_what_they_say(world: World) -> None:
    report = contract.NodeReport(
        node="n1", event="booted", slots=3, facts={"docker": "28"}, labels=("nvlink",), models=("Qwen/Qwen3-0.6B",)
    )
    inbox.node(world.flow, told(report))
    assert [(node.name, node.slots, node.state, node.facts) for node in world.flow.nodes()] == [
        ("n1", 3, "alive", {"docker": "28"})
    ]
    assert [(node.labels, node.models) for node in world.flow.nodes()] == [(("nvlink",), ("Qwen/Qwen3-0.6B",))]
    assert world.flow.checks()["workers"]() is None
    inbox.node(world.flow, told(report.model_copy(update={"event": "left"})))
    assert "no worker" in str(world.flow.checks()["workers"]())


def test_a_result_of_a_cancelled_bisection_changes_nothing(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    order = world.workers.probes.pop()
    world.flow.cancel(id, "me")
    answer = contract.ProbeResult(probe=order.probe, attempt=order.attempt, node="n", outcome=outcome(1))
    inbox.probed(world.flow, told(answer))
    assert world.flow.bisection(id).state is BisectionState.CANCELLED


@contextmanager
def away(url: str) -> Iterator[Callable[[], None]]:
    """The database cannot take anything; calling what it gives makes sure that whoever tries has been told so."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            yield lambda: None
        return
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as killer:
        holder.execute("LOCK TABLE bisections")
        end = """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        yield lambda: eventually(lambda: killer.execute(end).rowcount)


def control(broker: Broker, flow: Flow, ended: threading.Event | None = None) -> Celery:
    return inbox.control_app(broker.url, flow, CeleryQueue(broker.url), inbox.Patience(ended or threading.Event()))


def impatient(world: World, database_url: str) -> Flow:
    """The same, waiting for a locked SQLite a tenth of a second only."""
    return Flow(replace(world.flow.ports, bisections=Database(create_engine(database_url, busy_timeout_s=0.1))))


def broken(world: World, folder: Path) -> Flow:
    """The same, whose folder of mirrors has become a file."""
    history = GitHistory(folder, allow_file=True)
    shutil.rmtree(folder)
    folder.write_text("a file")
    return Flow(replace(world.flow.ports, history=history))


def a_probe_s_end(world: World) -> contract.ProbeResult:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.start(world.flow)
    return contract.ProbeResult(probe=order.probe, attempt=order.attempt, node="n1", outcome=outcome(1))


def test_a_report_that_the_database_cannot_take_now_is_kept_until_it_can(
    world: World, database_url: str, broker: Broker
) -> None:
    answer = a_probe_s_end(world)
    app = control(broker, impatient(world, database_url))
    done = threading.Thread(target=lambda: app.tasks[str(Task.PROBED)].apply(args=[told(answer)], throw=True))
    with away(database_url) as interrupt:
        done.start()
        interrupt()
        done.join(0.5)
        assert done.is_alive()
    done.join(30)
    assert world.flow.probe(answer.probe).state is ProbeState.JUDGED


def test_a_report_that_cannot_be_kept_when_the_service_ends_goes_back_into_the_queue(
    world: World, database_url: str, broker: Broker
) -> None:
    answer, ended = a_probe_s_end(world), threading.Event()
    ended.set()
    app = control(broker, impatient(world, database_url), ended)
    with away(database_url) as interrupt:
        done = threading.Thread(target=lambda: app.tasks[str(Task.PROBED)].apply(args=[told(answer)], throw=True))
        done.start()
        interrupt()
        done.join(30)
    assert broker.client().llen(contract.Queue.CONTROL) == 1
    assert not broker.client().exists(contract.done_key("probe", answer.probe, answer.attempt))


def test_a_preparation_while_the_database_is_away_is_no_failure(
    world: World, database_url: str, broker: Broker
) -> None:
    id, ended = world.submit().id, threading.Event()
    ended.set()
    app = control(broker, impatient(world, database_url), ended)
    with away(database_url) as interrupt:
        done = threading.Thread(target=lambda: app.tasks[str(Task.PREPARE)].apply(args=[id]))
        done.start()
        interrupt()
        done.join(30)
    assert world.flow.bisection(id).state is BisectionState.QUEUED


def test_a_probe_whose_end_could_not_be_handled_is_run_again_when_it_was_silent(
    world: World, broker: Broker, tmp_path: Path
) -> None:
    answer = a_probe_s_end(world)
    app = control(broker, broken(world, tmp_path / "file"))
    assert app.tasks[str(Task.PROBED)].apply(args=[told(answer)]).failed()
    assert world.flow.probe(answer.probe).state is ProbeState.RUNNING
    silent(world)
    probe = world.flow.probe(answer.probe)
    assert (probe.state, probe.attempt, probe.faults[0].kind) == (ProbeState.QUEUED, 2, "lost")
    world.workers.carries = True
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(probe.bisection_id).state is BisectionState.FOUND


def test_a_build_whose_end_cannot_be_read_is_a_fault_and_is_made_again(world: World, broker: Broker) -> None:
    id = world.submit(project="python").id
    world.workers.prepare(world.flow)
    order = world.workers.builds.pop()
    world.flow.started("build", order.key, order.attempt, "n1")
    unreadable = {"version": contract.VERSION, "key": order.key, "attempt": order.attempt, "wheel": 7}
    control(broker, world.flow).tasks[str(Task.BUILT)].apply(args=[unreadable], throw=True)
    world.wait_for_retry()
    assert world.workers.builds[0].attempt == 2
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


@pytest.mark.parametrize("wrong", [{"gpu_leased_s": math.inf}, {"gpu_used_s": math.nan}, {"node": "n\x1b[31m"}])
def test_a_result_with_what_cannot_be_is_a_fault_of_its_node_and_nothing_else(
    world: World, wrong: dict[str, object]
) -> None:
    answer = a_probe_s_end(world)
    inbox.probed(world.flow, {**told(answer), **wrong})
    probe = world.flow.probe(answer.probe)
    assert (probe.state, probe.attempt, probe.outcome) == (ProbeState.QUEUED, 2, None)
    assert (probe.gpu_leased_s, probe.gpu_used_s) == (0.0, 0.0)
    (fault,) = probe.faults
    assert (fault.kind, fault.node) == ("report", "" if "node" in wrong else "n1")
    assert next(iter(wrong)) in fault.message and fault.message.isprintable()


def test_a_survey_with_what_cannot_be_is_asked_for_again(native: World) -> None:
    id = submit(native).id
    native.flow.prepare(native.workers.prepares.pop())
    order = native.workers.surveys.pop()
    odd = {
        "version": contract.VERSION,
        "bisection": id,
        "attempt": order.attempt,
        "node": "n1",
        "builder": {"python": 3},
    }
    inbox.surveyed(native.flow, odd)
    assert [fault.kind for fault in native.flow.bisection(id).setup.survey.faults] == ["report"]
    native.wait_for_retry()
    assert [again.attempt for again in native.workers.surveys] == [2]


@pytest.mark.parametrize("wrong", [{"slots": -100000}, {"slots": 2**70}, {"node": ""}, {"node": "n\n"}])
def test_a_node_that_says_what_cannot_be_is_a_line_in_the_log_and_nothing_else(
    world: World, wrong: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    before = world.flow.nodes()
    report = contract.NodeReport(node="bad", event="alive", slots=1)
    inbox.node(world.flow, {**told(report), **wrong})
    inbox.started(world.flow, {**told(contract.Started(kind="probe", id="b1.1", attempt=1, node="bad")), "attempt": -1})
    assert world.flow.nodes() == before
    assert f"cannot be read: {next(iter(wrong))}" in caplog.text and "cannot be read: attempt" in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_a_preparation_that_breaks_ends_the_bisection_as_failed(world: World, broker: Broker, tmp_path: Path) -> None:
    id = world.submit().id
    app = control(broker, broken(world, tmp_path / "file"))
    assert app.tasks[str(Task.PREPARE)].apply(args=[id]).failed()
    found = world.flow.bisection(id)
    assert found.state is BisectionState.FAILED
    assert found.problem is not None


RESULTS = {
    Task.PROBED: contract.ProbeResult(probe="bnone.1", attempt=1, node="n", outcome=outcome(1)),
    Task.BUILT: contract.BuildResult(key="knone", attempt=1, node="n", seconds=1.0),
    Task.SURVEYED: contract.SurveyResult(bisection="bnone", attempt=1, node="n"),
}


def done(broker: Broker) -> set[str]:
    return {key.removeprefix("firstbad:done:") for key in broker.client().keys("firstbad:done:*")}


def test_a_worker_may_forget_a_result_that_was_recorded_or_does_not_count(world: World, broker: Broker) -> None:
    answer = a_probe_s_end(world)
    app = control(broker, world.flow)
    started = contract.Started(kind="probe", id=answer.probe, attempt=1, node="n1")
    app.tasks[str(Task.STARTED)].apply(args=[told(started)], throw=True)
    assert done(broker) == set()
    app.tasks[str(Task.PROBED)].apply(args=[told(answer)], throw=True)
    mine = f"probe:{answer.probe}:1"
    assert done(broker) == {mine} and world.flow.probe(answer.probe).state is ProbeState.JUDGED
    assert 0 < broker.client().ttl(contract.done_key("probe", answer.probe, 1)) <= 24 * 3600
    older, unknown = told(answer.model_copy(update={"attempt": 0})), {"probe": 7, "version": None}
    other = {"version": 99, "probe": answer.probe, "attempt": "3"}
    for payload in (older, unknown, other):
        app.tasks[str(Task.PROBED)].apply(args=[payload], throw=True)
    assert done(broker) == {mine, f"probe:{answer.probe}:0", f"probe:{answer.probe}:3"}


def test_a_worker_may_forget_what_this_database_does_not_hold_and_what_cannot_be_read(
    world: World, broker: Broker
) -> None:
    app = control(broker, world.flow)
    for task, result in RESULTS.items():
        app.tasks[str(task)].apply(args=[told(result)], throw=True)
    assert done(broker) == {"probe:bnone.1:1", "build:knone:1", "survey:bnone:1"}
    unreadable = {"version": contract.VERSION, "key": "kodd", "attempt": 1, "wheel": 7}
    app.tasks[str(Task.BUILT)].apply(args=[unreadable], throw=True)
    assert "build:kodd:1" in done(broker)


def test_a_worker_keeps_what_could_not_be_recorded(world: World, broker: Broker, tmp_path: Path) -> None:
    answer = a_probe_s_end(world)
    app = control(broker, broken(world, tmp_path / "file"))
    assert app.tasks[str(Task.PROBED)].apply(args=[told(answer)]).failed()
    assert done(broker) == set()
    assert world.flow.probe(answer.probe).state is ProbeState.RUNNING


def test_a_redis_that_is_away_keeps_nothing_from_being_recorded(world: World, broker: Broker) -> None:
    answer = a_probe_s_end(world)
    app = control(broker, world.flow)
    broker.stop()
    app.tasks[str(Task.PROBED)].apply(args=[told(answer)], throw=True)
    assert world.flow.probe(answer.probe).state is ProbeState.JUDGED


@pytest.mark.parametrize("id", [None, {}, 7, "", "b\n1", "bnone"])
def test_the_preparation_of_nothing_is_dropped(world: World, broker: Broker, id: object) -> None:
    app = control(broker, world.flow)
    app.tasks[str(Task.PREPARE)].apply(args=[id], throw=True)
    assert world.flow.bisections() == ()


def test_log_lines_of_a_report_hold_nothing_that_cannot_be_printed() -> None:
    odd = {"kind": "probe", "id": "b\nx.1", "attempt": "\x1b[2J", "node": "\x1b[2J"}
    assert all(value.isprintable() for value in inbox.about(odd).values())


CONSUMES = """
import sys
from service import roles, wiring
roles.consume(wiring.wire(wiring.settings(home=sys.argv[1], redis_url=sys.argv[2])))
"""


def test_a_control_worker_that_breaks_says_so_by_its_status(broker: Broker, tmp_path: Path) -> None:
    migrate.upgrade(f"sqlite:///{tmp_path / 'firstbad.sqlite'}")
    broker.client().lpush(contract.Queue.CONTROL, "garbage")
    command = [sys.executable, "-c", CONSUMES, str(tmp_path), broker.url]
    assert subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 1


def test_a_control_worker_waits_for_its_redis_for_as_long_as_that_takes(world: World, broker: Broker) -> None:
    assert control(broker, world.flow).conf.broker_connection_max_retries is None


def silent(world: World) -> None:
    """No lease any more, and none for so long that the sweep takes it for lost."""
    world.workers.carries = False
    world.flow.sweep()
    world.clock.pass_(31)
    world.flow.sweep()
