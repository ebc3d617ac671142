"""The parts of the service as real processes, each started again when it ends, as compose does it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import redis

from firstbad import Client, NoService, ProblemError
from tests.chaos import material
from tests.chaos.books import Books
from tests.chaos.material import Material
from tests.chaos.plan import Plan
from tests.chaos.proxy import Proxy
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PAUSE_S, STOP_S, START_S = 0.5, 60.0, 300.0
#: Of the tmpfs that is the store of a run in which it gets full.
DISK = "48m"


@dataclass
class Part:
    """A process that is started again whenever it ends, until `stop`."""

    name: str
    command: list[str]
    log: Path
    env: dict[str, str]
    how: dict[str, Any] = field(default_factory=dict)
    ends: int = -1
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> Part:
        self._spawn()
        threading.Thread(target=self._look_after, daemon=True).start()
        return self

    def _spawn(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **self.how
            )
        self.ends += 1

    def _look_after(self) -> None:
        while True:
            self.process.wait()
            if self._over.wait(PAUSE_S):
                return
            self._spawn()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def stop(self) -> str:
        """What was wrong with it; empty when it ended in time."""
        self._over.set()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"{self.name} did not end within {STOP_S:.0f} s of SIGTERM"
        return ""


class Stack:
    """Leaving the context stops all of it, in a good order."""

    def __init__(self, folder: Path, material: Material, plan: Plan) -> None:
        self.folder, self.material, self.plan = folder, material, plan
        self.store, self.temporary, self.clock = folder / "store", folder / "tmp", folder / "clock"
        self.gpus, self.sockets, self.engine_run = folder / "gpus", folder / "pg", folder / "engine"
        self.redis_port, self.api_port = _free_port(), _free_port()
        self.proxy = Proxy(self.redis_port)
        self.parts: dict[str, Part] = {}
        self.troubles: list[str] = []
        self.over = threading.Event()
        self.on_disk = "disk" in plan.faults
        sqlite = plan.database == "sqlite"
        self.books = Books(f"sqlite:///{folder / 'firstbad.sqlite'}" if sqlite else material_url(self.sockets))

    @property
    def redis_url(self) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/0"

    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url, socket_timeout=10.0)

    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.api_port}", timeout_s=30.0)

    def workers(self) -> list[Part]:
        return [part for name, part in self.parts.items() if name.startswith("worker")]

    def controls(self) -> list[Part]:
        return [part for name, part in self.parts.items() if name.startswith("control")]

    def start(self) -> None:
        for folder in (self.store, self.temporary, self.gpus, self.folder / "home"):
            folder.mkdir()
        if self.on_disk:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "firstbad-chaos", str(self.store)]
            subprocess.run(mount, check=True)
        self._pipe = os.pipe()
        self._listener = socket.create_server(("127.0.0.1", self.api_port))
        self._start_database()
        self._part("redis", ["redis-server", "--port", str(self.redis_port), *_NOT_KEPT])
        eventually(self._redis_answers, START_S, "Redis answers")
        if self.plan.sandbox == "docker":
            self.engine_run.mkdir()
            command = material.engine_command(self.material.engine, self.engine_run)
            self._part("engine", command)
            eventually(lambda: material.engine_answers(self.engine_run), START_S, "the container engine answers", 0.2)
        for number in range(self.plan.controls):
            self._service(f"control{number}", "control")
        self._service("api", "api")
        for number in range(self.plan.workers):
            self._part(f"worker{number}", [sys.executable, "-m", "tests.worker.impatient"], self._worker_env(number))
        eventually(self._ready, START_S, "the service is ready", 0.3)

    def _start_database(self) -> None:
        if self.plan.database == "sqlite":
            shutil.copyfile(self.material.sqlite, self.folder / "firstbad.sqlite")
            return
        data = self.folder / "cluster"
        subprocess.run(["cp", "-a", str(self.material.cluster), str(data)], check=True)
        self.sockets.mkdir()
        material.given(self.sockets)
        self._part("postgres", material.serve_command(data, self.sockets), cwd="/", **material.nobody())
        self.books.rows("SELECT 1 AS n")

    def _part(self, name: str, command: list[str], env: dict[str, str] | None = None, **how: Any) -> Part:
        made = Part(name, command, self.folder / f"{name}.log", {**_clean(), **(env or {})}, how)
        self.parts[name] = made
        return made.start()

    def _service(self, name: str, role: str) -> None:
        inherited = (self._pipe[0], self._listener.fileno())
        fds = {"FIRSTBAD_PARENT_FD": str(inherited[0]), "FIRSTBAD_LISTEN_FD": str(inherited[1])}
        env = {**self._env(self.redis_port), **fds}
        self._part(name, [sys.executable, "-m", "service.embedded", role], env, pass_fds=inherited)

    def _env(self, redis_port: int) -> dict[str, str]:
        return {
            "FIRSTBAD_HOME": str(self.folder / "home"),
            "FIRSTBAD_DATABASE_URL": self.books.url,
            "FIRSTBAD_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            "FIRSTBAD_STORE_URL": str(self.store),
            "FIRSTBAD_SANDBOXES": "process,docker",
            "FIRSTBAD_ALLOW_FILE_REPOS": "true",
            "FIRSTBAD_SWEEP_S": "4",
            "TMPDIR": str(self.temporary),
        }

    def work(self, number: int) -> Path:
        return self.folder / f"work{number}"

    def _worker_env(self, number: int) -> dict[str, str]:
        env = {
            **self._env(self.proxy.port),
            "FIRSTBAD_WORK_DIR": str(self.work(number)),
            "FIRSTBAD_NODE": f"node{number}",
            "FIRSTBAD_SLOTS": "2",
            "FIRSTBAD_SANDBOXES": self.plan.sandbox,
            "FIRSTBAD_GPUS": "2xFake-80GB",
            "FIRSTBAD_GPU_DIR": str(self.gpus / str(number)),
            "FIRSTBAD_HIDDEN": str(self.folder / "home"),
        }
        if self.plan.sandbox == "docker":
            env["FIRSTBAD_DOCKER_HOST"] = material.engine_url(self.engine_run)
        if "clock" in self.plan.faults:
            self.clock.write_bytes(bytes(8))
            env |= {"LD_PRELOAD": str(self.material.clock), "CHAOS_CLOCK": str(self.clock)}
        return env

    def _redis_answers(self) -> bool:
        try:
            with self.redis() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def _ready(self) -> bool:
        try:
            with self.client() as client:
                return len(client.nodes()) == self.plan.workers
        except (NoService, ProblemError):
            return False

    def set_clock(self, wrong_s: int) -> None:
        """Of the workers, as it is mapped into them."""
        with self.clock.open("r+b") as file:
            file.write(struct.pack("=q", wrong_s))

    def jobs(self, part: Part) -> list[psutil.Process]:
        """What an execution worker runs now, the sandboxes themselves first."""
        try:
            return [child for child in psutil.Process(part.pid).children() if child.name() in ("bwrap", "unshare")]
        except psutil.NoSuchProcess:
            return []

    def stop(self) -> None:
        """The workers first, then who records, then what both stand on."""
        order = ("api", "worker", "control", "engine", "redis", "postgres")
        for name in sorted(dict(self.parts), key=lambda name: order.index(name.rstrip("0123456789"))):
            self.parts[name].send(signal.SIGCONT)
            trouble = self.parts[name].stop()
            if trouble and name != "postgres":
                self.troubles.append(trouble)
        self.proxy.close()
        self._listener.close()
        for end in self._pipe:
            os.close(end)

    def unmount(self) -> None:
        self.over.set()
        if self.on_disk and os.path.ismount(self.store):  # noqa: PTH114
            subprocess.run(["umount", "--lazy", str(self.store)], check=True)


_NOT_KEPT = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--daemonize", "no", "--dir", "/"]


def material_url(sockets: Path) -> str:
    return material.url_of(sockets)


def _clean() -> dict[str, str]:
    """This process's variables without settings of firstbad; the code under test is the one beside this suite."""
    # Whatever is compiled is compiled once.
    left_out = ("FIRSTBAD_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "PYTHONPATH": str(ROOT)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """One at a time of all runs, as of those that share the engine's folder."""
    import fcntl

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def patiently(call: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the API answers, also when it is down now. Errors: ProblemError, where the request is at fault."""
    found: list[Any] = []

    def answered() -> bool:
        try:
            found.append(call())
        except NoService:
            return False
        except ProblemError as error:
            if error.problem.status < 500:
                raise
            return False
        return True

    eventually(answered, seconds, "the API answers", 0.2)
    return found[-1]
