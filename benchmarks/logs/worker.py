"""A worker process and the queue's other end, and how much memory it and what runs inside its sandboxes take."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import redis

from service.adapters.probe_queue import sender
from worker.contract import ProbeOrder, Queue, Task

INSIDE = "inside.phases"
LOOK_S = 0.1
SECRET = "BENCH_TOKEN"


class Worker:
    """`python -m worker` with a store of its own below `folder`."""

    def __init__(self, folder: Path, redis_url: str, sandbox: str) -> None:
        self.store = folder / "store"
        self._redis = redis.Redis.from_url(redis_url, socket_timeout=30.0, decode_responses=True)
        self._app = sender(redis_url)
        self._log = folder / "worker.log"
        settings = {
            "FIRSTBAD_REDIS_URL": redis_url,
            "FIRSTBAD_WORK_DIR": str(folder / "work"),
            "FIRSTBAD_STORE_URL": str(self.store),
            "FIRSTBAD_NODE": f"bench-{os.getpid()}",
            "FIRSTBAD_SANDBOXES": sandbox,
            "FIRSTBAD_ALLOW_FILE_REPOS": "true",
            "FIRSTBAD_SECRETS": SECRET,
            SECRET: "s3cr3t-0123456789abcdef-of-no-worth",
        }
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "worker"]
            self._process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
        self._hear(Task.NODE)

    def run(self, order: ProbeOrder) -> dict[str, Any]:
        """Its outcome."""
        message = order.model_dump(mode="json")
        self._app.send_task(Task.PROBE, args=[message], queue=Queue.PROBE, ignore_result=True)
        result = self._hear(Task.PROBED)
        if result["outcome"] is None:
            raise SystemExit(f"bench-logs: {result['fault']}")
        outcome: dict[str, Any] = result["outcome"]
        return outcome

    def _hear(self, task: str) -> dict[str, Any]:
        while True:
            got = self._redis.brpop([Queue.CONTROL], timeout=5)
            if got is None and self._process.poll() is not None:
                raise SystemExit(f"bench-logs: the worker ended:\n{self._log.read_text()}")
            if got is None:
                continue
            message = json.loads(got[1])
            if message["headers"]["task"] == task:
                body: dict[str, Any] = json.loads(base64.b64decode(message["body"]))[0][0]
                return body

    @property
    def peak(self) -> int:
        """Bytes that the process had in memory at most, as the kernel counted."""
        return _peak(self._process.pid)

    @property
    def now(self) -> int:
        return int(psutil.Process(self._process.pid).memory_info().rss)

    @contextmanager
    def looking_inside(self) -> Iterator[list[int]]:
        """The list holds at its end the peak of what reads the output within the sandbox."""
        seen, over = [0], threading.Event()

        def look() -> None:
            while not over.wait(LOOK_S):
                for process in psutil.process_iter():
                    with suppress(psutil.Error, OSError):
                        if any(INSIDE in word for word in process.cmdline()):
                            seen[0] = max(seen[0], _peak(process.pid))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            over.set()
            thread.join()

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
