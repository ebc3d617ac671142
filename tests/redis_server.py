"""A throwaway Redis that can go away and come back."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess

import redis

from tests.waiting import eventually

#: Below those that the kernel hands out: while a broker is away, some connection would be given its port, even that of
#: a client which tries to reach it and so reaches itself.
PORTS = range(12000, 32000)


def _port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class Broker:
    """A Redis of its own, on a port that stays the same, without a memory of its past."""

    def __init__(self) -> None:
        self.port = _port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(self._answers)

    def _answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, f"redis-server ended; port {self.port} taken?"
        try:
            return bool(self.client().ping())
        except redis.ConnectionError:
            return False

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=30.0, decode_responses=True)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
