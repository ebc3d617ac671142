"""The network between workers and Redis: a TCP proxy that can stall, and that remembers the results it carried."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading

RESULTS = ("firstbad.started", "firstbad.built", "firstbad.probed", "firstbad.surveyed")


class Proxy:
    """Listens on a port of its own from the start until `close`."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open, self._over = threading.Event(), threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._carried: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def carried(self) -> list[bytes]:
        """The results that workers sent, as they lay on the wire, oldest first."""
        with self._lock:
            return list(self._carried)

    def cut(self) -> None:
        """Nothing goes through, and nobody is told."""
        self._open.clear()

    def mend(self, *, broken: bool) -> None:
        """What was under way arrives late, or, when `broken`, all connections end."""
        if broken:
            self._end()
        self._open.set()

    def close(self) -> None:
        self._over.set()
        # A thread that waits in accept() is not woken by closing what it waits on.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end()
        self._open.set()

    def _end(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                worker, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(worker,), daemon=True).start()

    def _join(self, worker: socket.socket) -> None:
        with self._lock:
            self._sockets.add(worker)
        self._open.wait()
        try:
            redis = socket.create_connection(self._target, 5.0)
            redis.settimeout(None)
        except OSError:
            self._drop(worker)
            return
        with self._lock:
            self._sockets.add(redis)
        for source, target, tap in ((worker, redis, Commands()), (redis, worker, None)):
            threading.Thread(target=self._carry, args=(source, target, tap), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, tap: Commands | None) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(65536):
                for command in tap.read(data) if tap is not None else ():
                    self._remember(command)
                self._open.wait()
                target.sendall(data)
        self._open.wait()
        self._drop(source, target)

    def _drop(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with self._lock:
                self._sockets.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _remember(self, command: list[bytes]) -> None:
        if len(command) == 3 and command[0].upper() == b"LPUSH" and command[1] == b"control" and is_result(command[2]):
            with self._lock:
                self._carried.append(command[2])


def is_result(message: bytes) -> bool:
    """Whether a message of Celery holds what a worker saw."""
    return json.loads(message).get("headers", {}).get("task") in RESULTS


class Commands:
    """Reads the commands of a Redis client: arrays of strings, each with its length before it."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, data: bytes) -> list[list[bytes]]:
        """Those that are complete now. Errors: ValueError, for what is no such command."""
        self._rest += data
        found = []
        while (command := self._one()) is not None:
            found.append(command)
        return found

    def _one(self) -> list[bytes] | None:
        try:
            count, at = self._number(b"*", 0)
            parts = []
            for _ in range(count):
                length, at = self._number(b"$", at)
                if len(self._rest) < at + length + 2:
                    return None
                parts.append(self._rest[at : at + length])
                at += length + 2
        except IndexError:
            return None
        self._rest = self._rest[at:]
        return parts

    def _number(self, sign: bytes, at: int) -> tuple[int, int]:
        """Errors: IndexError, when it has not come yet."""
        end = self._rest.find(b"\r\n", at)
        if end < 0:
            raise IndexError(at)
        if self._rest[at : at + 1] != sign:
            raise ValueError(f"no Redis command: {self._rest[at : at + 20]!r}")
        return int(self._rest[at + 1 : end]), end + 2
