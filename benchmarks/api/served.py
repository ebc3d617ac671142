"""The API's own process, started as `firstbad up` does it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import httpx
import psutil

from benchmarks.load.place import Place
from service.embedded import PARTS
from service.listener import listening, url
from tests.waiting import eventually


@dataclass(frozen=True)
class Served:
    url: str
    process: psutil.Process

    @property
    def rss_mb(self) -> float:
        return float(self.process.memory_info().rss) / 1e6

    def cpu_s(self) -> tuple[float, float]:
        """Seconds of processor time: its own, and of the processes that it started, as git."""
        times = self.process.cpu_times()
        return float(times.user + times.system), float(times.children_user + times.children_system)


@contextmanager
def served(place: Place, log: Path, tokens: bool) -> Iterator[Served]:
    """`tokens`: whether callers need them."""
    # Each watcher is a connection, here and there.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    (command,) = (part.command for part in PARTS if part.name == "api")
    pipe = os.pipe()
    with listening(ip_address("127.0.0.1"), 0) as listener, log.open("ab") as out:
        environment = {
            **os.environ,
            **place.settings,
            "FIRSTBAD_AUTH": "required" if tokens else "open",
            "FIRSTBAD_UP_KEY": "of-the-benchmark",
            "FIRSTBAD_PARENT_FD": str(pipe[0]),
            "FIRSTBAD_LISTEN_FD": str(listener.fileno()),
        }
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=out, pass_fds=(pipe[0], listener.fileno())
        )
        try:
            address = url(listener)
            eventually(
                lambda: httpx.get(f"{address}/healthz", trust_env=False, timeout=60).is_success, what="the API answers"
            )
            yield Served(address, psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(30)
            for end in pipe:
                os.close(end)


def run(module: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of the benchmark's own, that is spoken to by lines."""
    command = [sys.executable, "-m", f"benchmarks.api.{module}", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
