"""A worker that is killed, and the one that comes back: what ran in containers goes on, and is told of once."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import eventually
from tests.worker.bench import Bench
from tests.worker.index_server import Index, serving, wheel_of
from tests.worker.node import Node
from tests.worker.test_environments import gateway
from worker.contract import (
    BuildOrder,
    Dependencies,
    Gpus,
    Limits,
    ProbeOrder,
    ProbeResult,
    Queue,
    Reproduction,
    Serve,
    Source,
    Task,
    cancel_key,
    gpu_queue,
    lease_key,
    taken_key,
)

#: Is ready when the file `ready` is there.
SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("ready") else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
WAITS = "echo {0}; until test -e {0}; do sleep 0.05; done; echo after {0}"


@dataclass
class Life:
    """A node with containers, whose worker is killed and comes back."""

    node: Node
    bench: Bench

    def job(self, order: ProbeOrder, stage: str = "") -> Path:
        return self.node.work_dir / "jobs" / f"{order.probe}.{order.attempt}{stage}"

    def says(self, order: ProbeOrder, text: str, stage: str = "") -> None:
        log = self.job(order, stage) / "out" / "log"
        eventually(lambda: log.exists() and text in log.read_text(), what=f"{text} in {log}")

    def go(self, order: ProbeOrder, name: str, stage: str = "") -> None:
        (self.job(order, stage) / "work" / "tree" / name).touch()

    def killed(self) -> None:
        self.node.end(signal.SIGKILL)

    def back(self) -> list[dict[str, Any]]:
        """What the worker that comes back goes on with."""
        self.node.start()
        adopted: list[dict[str, Any]] = self.node.next(Task.NODE, event="booted")["adopted"]
        return adopted

    def containers(self, status: str | None = None) -> list[str]:
        worker = (self.node.work_dir / "id").read_text()
        command = ["docker", "ps", "--all", "--quiet", "--filter", f"label=firstbad.worker={worker}"]
        command += ["--filter", f"status={status}"] if status else []
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def result(self, order: ProbeOrder, *, stop: bool = False) -> ProbeResult:
        """The one that comes, when the worker is told to `stop` or before that, after which nothing is left."""
        assert not stop or self.node.end() == 0
        result = self.node.result(order.probe)
        assert (result.attempt, result.node) == (order.attempt, "node-1")
        eventually(lambda: not self.containers() and not list((self.node.work_dir / "jobs").iterdir()))
        assert stop or self.node.end() == 0
        self.node.next(Task.NODE, event="left")
        assert not [each for task, each in self.node.heard if task == Task.PROBED and each["probe"] == order.probe]
        assert 0 < self.node.broker.client().ttl(lease_key("probe", order.probe, order.attempt)) <= 30
        return result


@pytest.fixture
def life(node: Node, docker_bench: Bench) -> Iterator[Life]:
    node.settings.update(FIRSTBAD_SANDBOXES="docker", FIRSTBAD_STORE_URL=docker_bench.pipeline.site.store.url)
    found = Life(node, docker_bench)
    yield found
    if (node.work_dir / "id").exists() and (left := found.containers()):
        subprocess.run(["docker", "rm", "--force", *left], capture_output=True)


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as found:
        found.put("dep", "1.0", "2024-01-01T00:00:00Z")
        yield found


def held(order: ProbeOrder) -> list[dict[str, Any]]:
    return [{"kind": "probe", "id": order.probe, "attempt": order.attempt}]


def test_a_run_goes_on_in_whatever_phase_its_worker_is_killed(life: Life) -> None:
    serve = Serve(command=f"{WAITS.format('start')}; exec python3 -uc '{SERVER}'", within_s=60.0, ready_http="/")
    check = f"{WAITS.format('check')}; echo 'firstbad: bad wrong answer'; exit 4"
    order = life.bench.order(serve=serve, check=check, control=Reproduction(script=WAITS.format("control")))
    life.node.ready()
    life.node.send(order)
    for stage, said, file in (("", "start", "start"), ("", "503", "ready"), ("", "check", "check")):
        life.says(order, said, stage)
        life.killed()
        life.node.broker.client().delete(lease_key("probe", order.probe, 1))
        assert life.back() == held(order)
        eventually(lambda: life.node.broker.client().exists(lease_key("probe", order.probe, 1)))
        life.go(order, file, stage)
    life.says(order, "control", ".control")
    life.killed()
    assert life.back() == held(order)
    life.go(order, "control", ".control")
    outcome = life.result(order).outcome
    assert outcome is not None and outcome.told is not None and outcome.control is not None
    assert (outcome.exit_status, outcome.ready, outcome.ended_in) == (4, True, "check")
    assert outcome.told.reason == "wrong answer"
    assert [phase.name for phase in outcome.phases] == ["fetch", "start", "ready", "check"]
    assert (outcome.control.exit_status, outcome.control.log.last_lines) == (0, ("control", "after control"))  # type: ignore[union-attr]
    lines = life.bench.text(outcome)
    assert [lines.count(text) for text in ("start", "after start", "check", "after check")] == [1, 1, 1, 1]


def test_what_has_no_container_yet_is_not_gone_on_with(life: Life, index: Index) -> None:
    file, content = wheel_of("tested", "1.0", ("dep",))
    (life.node.work_dir.parent / file).write_bytes(content)
    wheel = f"wheels/k/{file}"
    life.bench.pipeline.site.store.put(life.node.work_dir.parent / file, wheel)
    env = {"UV_INDEX_URL": f"http://{gateway()}:{index.port}/simple", "UV_HTTP_RETRIES": "0"}
    life.node.settings["FIRSTBAD_PRIVATE_NETWORKS"] = "127.0.0.0/8"
    life.node.ready()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # In its fetch, from a server that says nothing.
        silent.settimeout(60.0)
        source = Source(repo=f"git://127.0.0.1:{silent.getsockname()[1]}/project", sha=life.bench.shas[0])
        life.node.send(life.bench.order("true", source=source))
        silent.accept()
        assert list((life.node.work_dir / "jobs").iterdir()) != []
        life.killed()
        assert life.back() == []
    # In its environment: what installs that has a container of its own.
    index.open.clear()
    order = life.bench.order("true", wheel=wheel, dependencies=Dependencies(network="bridge"), env=env)
    life.node.send(order)
    eventually(lambda: index.asked)
    life.killed()
    assert life.containers() != []
    assert life.back() == []
    assert life.containers() == [] and list((life.node.work_dir / "jobs").iterdir()) == []
    # In its install, which is a part of the run. The service has given it back meanwhile.
    index.asked.clear()
    online = order.sandbox.model_copy(update={"network": "bridge"})
    second = order.model_copy(update={"attempt": 2, "dependencies": None, "sandbox": online})
    life.node.send(second)
    eventually(lambda: index.asked)
    life.killed()
    assert life.back() == held(second)
    index.open.set()
    outcome = life.result(second).outcome
    assert outcome is not None and (outcome.exit_status, outcome.ended_in) == (0, "script")


def test_what_ended_meanwhile_is_told_of_and_what_goes_on_ends_with_a_worker_that_is_told_to(life: Life) -> None:
    life.node.settings["FIRSTBAD_SLOTS"] = "2"
    ended, goes_on = (life.bench.order(f"{WAITS.format('go')}; exit 3") for _ in range(2))
    life.node.ready()
    for order in (ended, goes_on):
        life.node.send(order)
        life.says(order, "go")
    life.killed()
    life.go(ended, "go")
    eventually(lambda: len(life.containers("running")) == 1)
    assert sorted(each["id"] for each in life.back()) == sorted([ended.probe, goes_on.probe])
    outcome = life.node.result(ended.probe).outcome
    assert outcome is not None and outcome.exit_status == 3
    assert outcome.log is not None and outcome.log.last_lines == ("go", "after go")
    result = life.result(goes_on, stop=True)
    assert result.fault is not None and result.fault.kind == "stopped"


def test_a_run_that_goes_on_keeps_its_slot_and_its_gpus(life: Life, tmp_path: Path) -> None:
    life.node.settings.update(FIRSTBAD_GPUS="1xFake-80GB", FIRSTBAD_GPU_DIR=str(tmp_path), FIRSTBAD_SLOTS="2")
    wanted = Gpus(count=1, model="fake-80gb")
    first = life.bench.order(WAITS.format("go"), gpus=wanted)
    second, third = life.bench.order("true", gpus=wanted), life.bench.order("true")
    life.node.ready()
    life.node.send(first, gpu_queue("fake-80gb"))
    life.says(first, "go")
    life.killed()
    assert life.back() == held(first)
    # The second takes the other slot and waits for the card, so that the third waits for a slot.
    life.node.send(second, gpu_queue("fake-80gb"))
    life.node.next(Task.STARTED, id=second.probe)
    life.node.send(third)
    life.node.next(Task.NODE, event="alive")
    assert not life.job(second).joinpath("kept.json").exists()
    assert not life.node.broker.client().exists(taken_key("probe", third.probe, 1))
    life.go(first, "go")
    results = {probe: life.node.result(probe).outcome for probe in (first.probe, second.probe, third.probe)}
    assert [outcome.exit_status for outcome in results.values() if outcome is not None] == [0, 0, 0]
    told = results[first.probe]
    assert told is not None and told.environment["gpus"] == "0: Fake-80GB"
    assert told.environment["gpu_free_bytes"] == str(80 * 1024**3)


def test_what_nobody_could_look_for_is_kept_until_the_engine_answers(life: Life, tmp_path: Path) -> None:
    order = life.bench.order(WAITS.format("go"))
    life.node.ready()
    life.node.send(order)
    life.says(order, "go")
    without = life.node.work_dir / "jobs" / "build-k1.1"
    without.mkdir()
    life.killed()
    engine = tmp_path / "engine.sock"
    life.node.settings["FIRSTBAD_DOCKER_HOST"] = f"unix://{engine}"
    life.node.start()
    booted = life.node.next(Task.NODE, event="booted")
    assert booted["adopted"] == []
    assert booted["facts"]["docker.left"].endswith(f": {order.probe}.1")
    assert life.job(order).exists() and not without.exists()
    assert len(life.containers("running")) == 1
    engine.symlink_to("/var/run/docker.sock")
    eventually(lambda: "docker.left" not in life.node.next(Task.NODE, event="alive")["facts"])
    assert life.containers() == [] and not life.job(order).exists()
    # Runs of this life are none of those that were left.
    later = life.bench.order("exit 3")
    life.node.send(later)
    outcome = life.result(later).outcome
    assert outcome is not None and outcome.exit_status == 3


def test_what_is_not_to_go_on_is_removed(life: Life) -> None:
    life.node.settings["FIRSTBAD_SLOTS"] = "4"
    gone, later, unknown = (life.bench.order(WAITS.format("go")) for _ in range(3))
    build = BuildOrder(
        key="k1",
        attempt=1,
        source=life.bench.source(),
        command=WAITS.format("go"),
        sandbox=life.bench.sandbox,
        limits=Limits(timeout_s=60.0),
    )
    life.node.ready()
    for order in (gone, later, unknown):
        life.node.send(order)
    life.node.app().send_task(Task.BUILD, args=[build.model_dump(mode="json")], queue=Queue.BUILD)
    for order in (gone, later, unknown):
        life.says(order, "go")
    log = life.node.work_dir / "jobs" / "build-k1.1" / "out" / "log"
    eventually(lambda: log.exists() and log.read_text())
    life.killed()
    kept = life.job(unknown) / "kept.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "of": "tomorrow"}))
    life.node.broker.client().set(cancel_key("probe", gone.probe, 1), "1")
    assert life.back() == held(later)
    assert len(life.containers()) == 1
    # It can be cancelled as any other.
    life.node.broker.client().set(cancel_key("probe", later.probe, 1), "1")
    eventually(lambda: not life.containers() and not list((life.node.work_dir / "jobs").iterdir()))
    assert life.node.end() == 0
    life.node.next(Task.NODE, event="left")
    assert not [each for task, each in life.node.heard if task in (Task.PROBED, Task.BUILT)]
