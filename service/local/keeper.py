"""Runs one command and leaves nothing of it: started as a program of its own, `python -I -S keeper.py`.

The first line of standard input says what to run. The end of standard input means that whoever asked is gone, or wants
it no more, and ends it too. On standard output one line of JSON tells how it went. Only the standard library, since a
start must cost little.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

PIECE = 1 << 16
#: Seconds between the request to end and the kill, and for which the last output of a killed command is waited for.
GRACE_S, LAST_WORDS_S = 2.0, 2.0
_SUBREAPER = 36


class Log:
    """Keeps the beginning and the end of what was written; between them, the middle is left out."""

    def __init__(self, path: Path, cap: int) -> None:
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._head_left, self._tail_most = cap - cap // 2, cap // 2
        self._tail: collections.deque[bytes] = collections.deque()
        self._tail_bytes = self.left_out = self.bytes = 0

    def write(self, piece: bytes) -> None:
        self.bytes += len(piece)
        head = piece[: self._head_left]
        if head:
            self._file.write(head)
            self._head_left -= len(head)
        if rest := piece[len(head) :]:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
            while self._tail_bytes - len(self._tail[0]) >= self._tail_most:
                gone = self._tail.popleft()
                self._tail_bytes -= len(gone)
                self.left_out += len(gone)

    def close(self) -> None:
        if self.left_out:
            self._file.write(b"\n[firstbad: %d bytes left out]\n" % self.left_out)
        for piece in self._tail:
            self._file.write(piece)
        self._file.close()


def descendants(pid: int) -> list[int]:
    """As /proc tells; none where there is no such thing."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name stands in brackets and may hold anything, brackets too.
            parent = int(entry.read_bytes().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found, waiting = [], [pid]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Keeper:
    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._log = Log(Path(order["log"]), order["cap_bytes"])
        self._status: int | None = None
        self._wake, wake = os.pipe()
        for end in (self._wake, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._asked(number))
        self._told_to_stop = False

    def _asked(self, number: int) -> None:
        self._told_to_stop |= number != signal.SIGCHLD

    def run(self) -> dict[str, Any]:
        if sys.platform == "linux":
            # What the command leaves behind becomes a child of ours, and not of the first process of the system.
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        process = subprocess.Popen(
            self._order["command"],
            cwd=self._order["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        self._main, self._pipe = process.pid, process.stdout.fileno()
        ended = "failed"
        try:
            ended = self._wait(self._order["timeout_s"], stdin=True)
            if ended:
                self._end()
        finally:
            # Also where the log cannot be written.
            left = self._kill()
            if ended and self._order["cleanup"]:
                subprocess.run(self._order["cleanup"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self._drain()
        self._log.close()
        return {"status": self._status, "ended": ended, "left": left, "bytes": self._log.bytes,
                "cut": bool(self._log.left_out)}  # fmt: skip

    def _wait(self, limit_s: float | None, *, stdin: bool) -> str:
        """Until the command ends by itself: "". Else why it has to be ended."""
        until = None if limit_s is None else time.monotonic() + limit_s
        watched = [self._wake, self._pipe, *([0] if stdin else [])]
        while self._status is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return "time"
            ready = select.select(watched, [], [], left)[0]
            if self._pipe in ready and not self._read():
                watched.remove(self._pipe)
            if self._wake in ready:
                os.read(self._wake, PIECE)
            if self._told_to_stop or (0 in ready and not os.read(0, PIECE)):
                return "stopped"
            self._reap()
        return ""

    def _end(self) -> None:
        """First asks, then lets it be killed."""
        send([self._main, *descendants(os.getpid())], signal.SIGTERM)
        self._told_to_stop = False
        self._wait(GRACE_S, stdin=False)

    def _kill(self) -> int:
        """All that is left, also of what went into sessions of its own; how many there were beside the command."""
        left: set[int] = set()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._main, signal.SIGKILL)
        until = time.monotonic() + LAST_WORDS_S
        while pids := descendants(os.getpid()):
            left |= {*pids} - {self._main}
            send(pids, signal.SIGKILL)
            select.select([self._wake], [], [], max(min(0.2, until - time.monotonic()), 0))
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, PIECE)
            self._reap()
            if time.monotonic() > until:
                break
        self._reap()
        return len(left)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._main:
                    self._status = found[1]

    def _read(self) -> bool:
        piece = os.read(self._pipe, PIECE)
        self._log.write(piece)
        return bool(piece)

    def _drain(self) -> None:
        until = time.monotonic() + LAST_WORDS_S
        while select.select([self._pipe], [], [], max(until - time.monotonic(), 0))[0]:
            if not self._read() or time.monotonic() > until:
                return


def _order() -> bytes:
    """The first line, and not a byte more: what follows is looked for where the file descriptor stands."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(0, 1)):
        line += piece
    return line


def main() -> None:
    order = json.loads(_order())
    try:
        told = Keeper(order).run()
    except OSError as error:
        told = {"error": f"{order['log']}: {error.strerror}"}
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
