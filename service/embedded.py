"""Entry: `firstbad up`. Redis, API, control worker and execution worker of one machine, from one command.

The parent starts the others, waits, and stops them. Each child but Redis holds the reading end of a pipe whose writing
end only the parent has: should the parent die without a word, the pipe closes and the children end by themselves.
"""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import Literal

import httpx

from service import handed, roles, running, wiring
from service.adapters.database import migrate
from service.embedded_redis import EmbeddedRedis
from service.listener import Taken, listening, url

log = logging.getLogger(__name__)
START_S = 60.0
STOP_S = 15.0
#: Seconds before a part that ended by itself is started again, by how often it did; the last for all that follow.
PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: Seconds: a part that ran for so long was well, and how often it ended before is forgotten.
WELL_S = 60.0
#: Seconds that a part may be unwell before `up` gives up.
GIVE_UP_S = 600.0
#: Before the service was ready once, a part that ends more often than this will not get well by waiting.
FIRST_ENDS = 3


class CannotStart(Exception):
    """Why `firstbad up` cannot run here, with what to do."""


@dataclass(frozen=True)
class Part:
    """A child process; `name` is also that of its log file."""

    name: str
    command: tuple[str, ...]


PARTS = (
    Part("api", (sys.executable, "-m", "service.embedded", "api")),
    Part("control", (sys.executable, "-m", "service.embedded", "control")),
    Part("worker", (sys.executable, "-m", "worker")),
)


def up(home: Path, port: int, slots: int, on_ready: Callable[[str], None]) -> None:
    """Runs until SIGINT or SIGTERM. `on_ready` gets the API's URL.

    Errors: CannotStart, NoRedis; nothing is left running then.
    """
    settings = wiring.settings(home=home, port=port, slots=slots)
    _check(settings)
    with ExitStack() as stack:
        stack.enter_context(only_one(settings.home_dir))
        listener = _listening(settings, stack)
        _migrate(settings.database)
        _not_open_to_others(settings)
        redis = None if settings.redis_url else EmbeddedRedis(settings.home_dir / "redis")
        redis_url = stack.enter_context(redis) if redis else str(settings.redis_url)
        environment = handed.environment(settings, redis_url)
        stack.enter_context(running.told(settings.home_dir, handed.of_worker(environment)))
        crew = stack.enter_context(Crew(settings.home_dir, environment, listener, redis))
        crew.start()
        crew.run(url(listener), on_ready)


def _check(settings: wiring.Settings) -> None:
    try:
        wiring.check(settings)
    except ValueError as error:
        raise CannotStart(str(error)) from None


def _listening(settings: wiring.Settings, stack: ExitStack) -> socket.socket:
    try:
        return stack.enter_context(listening(settings.host, settings.port))
    except Taken as error:
        raise CannotStart(str(error)) from None


def _migrate(database: str) -> None:
    try:
        migrate.upgrade(database)
    except (ValueError, migrate.WrongSchema, migrate.DatabaseUnavailable) as error:
        raise CannotStart(f"the database: {error}") from None


def _not_open_to_others(settings: wiring.Settings) -> None:
    """Arbitrary code runs here: who can reach it from elsewhere must be known."""
    if settings.host.is_loopback:
        return
    if settings.open:
        raise CannotStart(
            f"FIRSTBAD_AUTH=open: on {settings.host}, which others can reach, anybody could run what they like here; "
            "remove it, or listen on 127.0.0.1"
        )
    if settings.github_client_id is None and not wiring.any_token(settings):
        raise CannotStart(
            f"on {settings.host} callers need tokens, and there is none yet; make the first one:\n"
            f"  firstbad token create NAME --scope admin --database --home {settings.home_dir}"
        )


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Errors: CannotStart, while another one is."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / running.LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"another `firstbad up` runs with {home}: stop it, or name another --home") from None
        yield


@dataclass(frozen=True)
class Event:
    """`ended`: a part did so by itself. `due`: its pause is over. `signal`, `unready`: of the whole."""

    kind: Literal["ended", "due", "signal", "unready"]
    name: str = ""
    why: str = ""


class Health:
    """Of one part: when to start it again. Times are seconds of one clock."""

    def __init__(self, now: float) -> None:
        self._started = self._unwell_since = now
        self._ends = 0

    def started(self, now: float) -> None:
        self._started = now

    def ended(self, now: float, *, was_ready: bool) -> float | None:
        """Seconds to wait before the next start; None when it is given up."""
        if self._ends == 0 or now - self._started >= WELL_S:
            self._ends, self._unwell_since = 0, now
        self._ends += 1
        if now - self._unwell_since > GIVE_UP_S or (not was_ready and self._ends > FIRST_ENDS):
            return None
        return PAUSES_S[min(self._ends, len(PAUSES_S)) - 1]


class Crew:
    """The child processes. Leaving the context stops them: who runs probes first, who records them last.

    Redis runs already, and is only watched here: whoever entered it stops it, after all who need it.
    """

    def __init__(
        self, home: Path, environment: dict[str, str], listener: socket.socket, redis: EmbeddedRedis | None
    ) -> None:
        self._logs = home / "logs"
        self._environment = environment
        self._listener = listener
        self._key = token_urlsafe(32)
        # Signal handlers put into it, too, which only a SimpleQueue allows.
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._redis = redis
        self._spawns: dict[str, Callable[[], subprocess.Popen[bytes]]] = {
            part.name: partial(self._spawn, part) for part in PARTS
        }
        self._health: dict[str, Health] = {}
        self._was_ready = threading.Event()

    def __enter__(self) -> Crew:
        self._logs.mkdir(parents=True, exist_ok=True)
        self._pipe = os.pipe()
        os.set_inheritable(self._pipe[0], True)
        return self

    def __exit__(self, *failure: object) -> None:
        for name in ("api", "worker", "control"):
            if name in self._running:
                _stop(self._running[name])
        for end in self._pipe:
            os.close(end)

    def start(self) -> None:
        if self._redis is not None:
            self._spawns["redis"] = self._redis.spawn
            self._watch("redis", self._redis.process)
        for part in PARTS:
            self._start(part.name)

    def _start(self, name: str) -> None:
        try:
            self._running[name] = self._spawns[name]()
        except OSError as error:
            self._events.put(Event("ended", name, f"could not be started: {error}"))
        else:
            self._watch(name, self._running[name])

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        def wait() -> None:
            self._events.put(Event("ended", name, f"ended with status {process.wait()}"))

        self._health.setdefault(name, Health(monotonic())).started(monotonic())
        threading.Thread(target=wait, daemon=True).start()

    def _log_of(self, name: str) -> Path:
        return self._redis.log if name == "redis" and self._redis is not None else self._logs / f"{name}.log"

    def _spawn(self, part: Part) -> subprocess.Popen[bytes]:
        inherited = (self._pipe[0], self._listener.fileno())
        of_part = {**self._environment, "FIRSTBAD_UP_KEY": self._key}
        environment = {
            **(of_part if part.name == "api" else handed.of_worker(of_part)),
            "FIRSTBAD_PARENT_FD": str(self._pipe[0]),
            "FIRSTBAD_LISTEN_FD": str(self._listener.fileno()),
        }
        with self._log_of(part.name).open("ab") as out:
            return subprocess.Popen(
                part.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=inherited,
                start_new_session=True,
            )

    def run(self, url: str, on_ready: Callable[[str], None]) -> None:
        """Waits for a signal; starts again what ended by itself."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._events.put(Event("signal")))
        threading.Thread(target=self._announce, args=(url, on_ready), daemon=True).start()
        while (event := self._events.get()).kind != "signal":
            if event.kind == "unready":
                raise CannotStart(f"the service was not ready in time; its log is in {self._logs}")
            if event.kind == "due":
                self._start(event.name)
            else:
                self._start_later(event)

    def _start_later(self, ended: Event) -> None:
        now = monotonic()
        health = self._health.setdefault(ended.name, Health(now))
        pause_s = health.ended(now, was_ready=self._was_ready.is_set())
        if pause_s is None:
            last = last_line(self._log_of(ended.name))
            told = f": {last}" if last else ""
            raise CannotStart(f"{ended.name} {ended.why}, again and again{told}; its log is {self._log_of(ended.name)}")
        log.warning("%s %s; starting it again in %.0f s", ended.name, ended.why, pause_s)
        timer = threading.Timer(pause_s, self._events.put, (Event("due", ended.name),))
        timer.daemon = True
        timer.start()

    def _announce(self, url: str, on_ready: Callable[[str], None]) -> None:
        if _ready(url, self._key):
            self._was_ready.set()
            on_ready(url)
        else:
            self._events.put(Event("unready"))


def last_line(file: Path) -> str:
    """Of a log, as far as it can be read; without passwords of URLs."""
    with suppress(OSError), file.open("rb") as text:
        text.seek(max(0, text.seek(0, os.SEEK_END) - 4096))
        lines = [line for line in text.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return re.sub(r"://[^/@\s]+@", "://***@", lines[-1].strip())[:500] if lines else ""
    return ""


def _ready(url: str, key: str) -> bool:
    """Whether the whole service got ready within START_S, its worker too."""
    pause = threading.Event()
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, timeout=5, trust_env=False, verify=False, headers=headers) as client:
        for _ in range(int(START_S / 0.1)):
            with suppress(httpx.HTTPError):
                answer = client.get("/readyz")
                if answer.status_code == 200 and set(answer.json()["parts"].values()) == {"ok"}:
                    return True
            pause.wait(0.1)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_with_parent(fd: int) -> None:
    """The pipe says nothing until its other end is closed."""

    def wait() -> None:
        os.read(fd, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def child(role: str) -> None:
    """What a child process of `up` does."""
    settings = wiring.settings()
    wiring.log_to_stderr(settings.log_level, settings.log_format, settings.addresses)
    inherited = wiring.inherited()
    _end_with_parent(inherited.parent_fd)
    wired = wiring.wire(settings, f"firstbad-{role}")
    try:
        if role == "api":
            roles.serve(wired, inherited.listen_fd, inherited.up_key)
        else:
            roles.consume(wired)
    finally:
        wired.telemetry.tracing.close()


if __name__ == "__main__":
    child(sys.argv[1])
