"""Where the load runs: a Redis, a database, control workers and nodes, each in processes of its own, metered apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import psutil

from benchmarks.load.repository import Made
from service import wiring
from service.adapters.database import migrate
from tests import postgres
from tests.redis_server import Broker
from tests.waiting import eventually

#: As of a database that must not lose what it took; those of the tests do without.
DURABLE = "-c fsync=on -c synchronous_commit=on -c shared_buffers=256MB"
NODES, SLOTS = 8, 8


@dataclass(frozen=True)
class Cpu:
    """Seconds of processor time."""

    control: float
    database: float
    redis: float
    nodes: float

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(
            self.control - other.control,
            self.database - other.database,
            self.redis - other.redis,
            self.nodes - other.nodes,
        )

    @property
    def ours(self) -> float:
        """Of the control plane: the nodes are the benchmark's own."""
        return self.control + self.database + self.redis


class Place:
    """`settings`: of the service, as its environment gives them."""

    def __init__(self, folder: Path, broker: Broker, database_url: str, server: int | None) -> None:
        self.folder, self.broker, self.url, self._server = folder, broker, database_url, server
        self.measured = folder / "measured"
        self.measured.mkdir()
        self.settings = {
            "FIRSTBAD_HOME": str(folder / "home"),
            "FIRSTBAD_DATABASE_URL": database_url,
            "FIRSTBAD_REDIS_URL": broker.url,
            "FIRSTBAD_LOG_LEVEL": "WARNING",
        }
        self.control: list[subprocess.Popen[bytes]] = []
        self.nodes: subprocess.Popen[str] | None = None
        self.wired = wiring.wire(
            wiring.settings(
                home=folder / "home", database_url=database_url, redis_url=broker.url, allow_file_repos=True
            )
        )

    @contextmanager
    def control_workers(self, count: int, *options: str, environment: dict[str, str] | None = None) -> Iterator[None]:
        command = [sys.executable, "-m", "benchmarks.load.control", str(self.measured), *options]
        log = (self.folder / "control.log").open("ab")
        surroundings = {**os.environ, **self.settings, "OMP_NUM_THREADS": "1", **(environment or {})}
        self.control = [subprocess.Popen(command, env=surroundings, stdout=log, stderr=log) for _ in range(count)]
        try:
            yield
        finally:
            for process in self.control:
                process.send_signal(signal.SIGTERM)
            for process in self.control:
                process.wait(60)
            log.close()

    @contextmanager
    def execution_nodes(self, made: Made) -> Iterator[None]:
        shas = self.folder / "shas"
        shas.write_text("\n".join(made.shas))
        command = [sys.executable, "-m", "benchmarks.load.nodes", self.broker.url, str(shas), str(NODES), str(SLOTS)]
        self.nodes = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            eventually(lambda: len(self.wired.flow.nodes()) == NODES, what="the nodes are known")
            yield
        finally:
            if self.nodes.poll() is None:
                self.stop_nodes()

    def stop_nodes(self) -> tuple[int, int]:
        """How many results they sent, and how many orders they dropped."""
        assert self.nodes is not None and self.nodes.stdout is not None
        self.nodes.send_signal(signal.SIGTERM)
        sent, dropped = self.nodes.stdout.read().split()
        self.nodes.wait(60)
        return int(sent), int(dropped)

    def cpu(self) -> Cpu:
        redis = [self.broker.process.pid] if self.broker.process else []
        server = [self._server] if self._server else []
        nodes = [self.nodes.pid] if self.nodes else []
        control = [process.pid for process in self.control]
        return Cpu(*(sum(map(_seconds, pids)) for pids in (control, server, redis, nodes)))

    def peak_bytes(self) -> int:
        """The most that a control worker has had in memory."""
        return max(_peak(process.pid) for process in self.control)

    def seconds(self) -> dict[str, list[float]]:
        """Of all control workers that have ended, by what they did."""
        found: dict[str, list[float]] = {}
        for file in sorted(self.measured.glob("*.json")):
            for name, seconds in json.loads(file.read_text()).items():
                found.setdefault(name, []).extend(seconds)
            file.unlink()
        return found


def _seconds(pid: int) -> float:
    """Of a process and its children, those that have ended too."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def place(folder: Path, kind: str) -> Iterator[Place]:
    """`kind`: of the database, postgresql or sqlite. Everything is new, and gone afterwards but for `folder`."""
    folder.mkdir()
    broker = Broker()
    with ExitStack() as stack:
        stack.callback(broker.stop)
        url, server = f"sqlite:///{folder / 'firstbad.sqlite'}", None
        if kind == "postgresql":
            cluster = stack.enter_context(postgres.cluster(DURABLE))
            url = stack.enter_context(postgres.database(cluster))
            socket = Path(unquote(cluster.partition("?host=")[2]))
            server = int((socket / "data" / "postmaster.pid").read_text().split()[0])
        migrate.upgrade(url)
        yield Place(folder, broker, url, server)
