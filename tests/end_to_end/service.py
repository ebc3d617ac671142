"""`firstbad up` as a user starts it, in a process of its own, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from firstbad import Client, NoService
from service.doors.api.views import ReportView
from tests.waiting import eventually

FIRSTBAD = Path(sys.executable).with_name("firstbad")
PATIENCE_S = 120.0
#: Between two looks: each one costs the service a request, and the machine a part of what is waited for.
PAUSE_S = 0.1


class Service:
    """`home` belongs to this service alone, so what mentions it belongs to it as well."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token: str | None = None
        self._settings = {f"FIRSTBAD_{name.upper()}": value for name, value in settings.items()}

    def start(self, slots: int = 2) -> Service:
        command = [FIRSTBAD, "up", "--home", str(self.home), "--port", str(self.port), "--slots", str(slots)]
        self.log = self.home.with_name(self.home.name + ".log")
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, **self._settings}, start_new_session=True
            )
        until(lambda: self._ready() or self.process.poll() is not None, "the service is ready")
        assert self.process.poll() is None, self.log.read_text()
        return self

    def _ready(self) -> bool:
        return "is ready at" in self.log.read_text().split("Stopped.")[-1]

    def interrupt(self) -> int:
        """Ctrl-C. The exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def client(self) -> Client:
        return Client(self.url, self.token)

    def ended(self, id: str, patience_s: float = PATIENCE_S) -> ReportView:
        with self.client() as client:
            until(lambda: not client.bisection(id).live, f"{id} has ended", patience_s)
            return client.bisection(id)

    def submit(self, document: dict[str, Any]) -> str:
        with self.client() as client:
            return client.submit(document).id

    def processes(self) -> list[psutil.Process]:
        """Every process that mentions the home in its command line, environment, folder or open files."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        home = str(self.home)
        try:
            told = [*process.cmdline(), process.cwd(), process.environ().get("FIRSTBAD_HOME", "")]
            return process.pid != os.getpid() and any(home in text for text in told)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return False

    def programs(self) -> set[str]:
        """The names of those processes, as far as they have not ended meanwhile."""
        return {name for process in self.processes() for name in _name_of(process)}

    def part(self, name: str) -> psutil.Process:
        """The child process of that role."""
        words = {
            "worker": ["-m", "worker"],
            "control": ["service.embedded", "control"],
            "api": ["service.embedded", "api"],
        }
        return next(process for process in self.processes() if command_of(process)[-2:] == words[name])


def command_of(process: psutil.Process) -> list[str]:
    """Empty for a process that has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _name_of(process: psutil.Process) -> list[str]:
    try:
        return [process.name()]
    except psutil.Error:
        return []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Waits for what must come, also while the service itself is away; fails when it does not."""

    def came() -> object:
        try:
            return condition()
        except NoService:
            return False

    eventually(came, patience_s, what, PAUSE_S)
