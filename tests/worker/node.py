"""A worker process between a real Redis and real sandboxes, and the service's side of its queues."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import celery

from service.adapters.probe_queue import sender
from tests.redis_server import Broker
from tests.waiting import eventually
from tests.worker.bench import Bench
from worker.contract import NOW, BuildOrder, Limits, ProbeOrder, ProbeResult, Queue, Task, done_key, sent_key
from worker.queues import make_app

RESULTS = {Task.PROBED: ("probe", "probe"), Task.BUILT: ("build", "key"), Task.SURVEYED: ("survey", "bisection")}


@dataclass
class Node:
    """A worker process, and the service's side of the queue."""

    broker: Broker
    work_dir: Path
    log: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    module: str = "worker"
    heard: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: Whether the service says what it has recorded.
    records: bool = True

    def start(self, **popen: Any) -> None:
        settings = {
            "FIRSTBAD_REDIS_URL": self.broker.url,
            "FIRSTBAD_WORK_DIR": str(self.work_dir),
            "FIRSTBAD_NODE": "node-1",
            "FIRSTBAD_SANDBOXES": "process",
            "FIRSTBAD_ALLOW_FILE_REPOS": "true",
            **self.settings,
        }
        with self.log.open("ab") as log:
            env = {**os.environ, **settings}
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module], env=env, stdout=log, stderr=log, **popen
            )

    def ready(self) -> None:
        self.start()
        self.next(Task.NODE, event="booted")

    def end(self, number: int = signal.SIGTERM, seconds: float = 30.0) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def app(self) -> celery.Celery:
        return make_app(self.broker.url)

    def send(self, order: ProbeOrder, queue: str = Queue.PROBE, **changed: Any) -> None:
        message = {**order.model_dump(mode="json"), **changed}
        self.broker.client().set(sent_key("probe", order.probe, order.attempt), "1")
        sender(self.broker.url).send_task(Task.PROBE, args=[message], queue=str(queue), ignore_result=True)

    def send_build(self, bench: Bench, key: str, priority: int = NOW) -> None:
        """As the service does."""
        order = BuildOrder(
            key=key,
            attempt=1,
            source=bench.source(),
            command="exit 1",
            sandbox=bench.sandbox,
            limits=Limits(timeout_s=60.0),
        )
        app = sender(self.broker.url)
        app.send_task(Task.BUILD, args=[order.model_dump(mode="json")], queue=Queue.BUILD, priority=priority)

    def listen(self, seconds: int = 1) -> bool:
        got = self.broker.client().brpop([Queue.CONTROL], timeout=seconds)
        if got is not None:
            message = json.loads(got[1])
            body = json.loads(base64.b64decode(message["body"]))
            self.heard.append((message["headers"]["task"], body[0][0]))
            if self.records:
                self.record(*self.heard[-1])
        return got is not None

    def record(self, task: str, message: dict[str, Any]) -> None:
        """As the service does when it has dealt with a result."""
        if task in RESULTS:
            kind, name = RESULTS[task]
            self.broker.client().set(done_key(kind, message[name], message["attempt"]), "1")

    def next(self, task: str, **wanted: Any) -> dict[str, Any]:
        """The next message of that kind, each once."""

        def found() -> list[tuple[str, dict[str, Any]]]:
            self.listen()
            return matching()

        def matching() -> list[tuple[str, dict[str, Any]]]:
            return [each for each in self.heard if each[0] == task and wanted.items() <= each[1].items()]

        if not matching():
            eventually(found)
        first = matching()[0]
        self.heard.remove(first)
        return first[1]

    def go(self, order: ProbeOrder) -> None:
        """Tells a script that waits for the file `go`."""
        tree = self.work_dir / "jobs" / f"{order.probe}.1" / "work" / "tree"
        eventually(tree.exists)
        (tree / "go").touch()

    def result(self, probe: str) -> ProbeResult:
        return ProbeResult.model_validate(self.next(Task.PROBED, probe=probe))
