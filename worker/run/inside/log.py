# ruff: noqa: PTH105, PTH108, PTH118, PTH123, SIM105, UP031 (see __init__: what is imported costs time at each start)
"""The log: a time stamp a line, its head on disk at once, of the rest the last part, in constant memory."""

from __future__ import annotations

import os
import time
from _collections import deque  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    Entry = tuple[bytes, bytes, bool]

LINE = 64 * 1024
STAMP = len(b"2026-01-31T23:59:59.123Z ")
FLUSH_S = 0.5


class Log:
    """`add` takes what the run wrote, at most LINE bytes at a time. `cap`: bytes on disk in the end, half for the head.

    An entry is (time stamp, bytes, whether a line begins with them); it becomes text only when it goes to disk, so
    that a flood of which little is kept costs little.
    """

    def __init__(self, folder: str, cap: int, failure: str | None) -> None:
        self.folder, self.half = folder, max(cap // 2, 1)
        self.failure = failure.encode("utf-8", "replace") if failure else None
        self.failure_seen: str | None = None
        self.watch: Callable[[bytes], None] | None = None
        self.total = 0
        self.carry = b""
        self.open = 0
        self.full = False
        self.head = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.head_size = 0
        self.pending: deque[Entry] = deque()
        self.pending_size = 0
        self.tail_size = 0
        self.flushed = time.monotonic()
        self.broken: OSError | None = None  # why nothing can be written any more

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if self.failure is not None or self.watch is not None:
            self.look(data)
        fresh = self.open == 0
        entry: Entry | None = (stamp(), self.cut(data), fresh)
        if not self.full and entry is not None:
            entry = self.to_head(render(entry))
        if entry is not None:
            self.to_tail(entry)

    def cut(self, data: bytes) -> bytes:
        """Ends a line that grew beyond LINE. Only the first line of `data` can: the others are shorter than it."""
        end = data.find(b"\n")
        if self.open + (end if end >= 0 else len(data)) > LINE:
            keep = LINE - self.open
            data = data[:keep] + b"\n" + data[keep:]
        last = data.rfind(b"\n")
        self.open = len(data) - last - 1 if last >= 0 else self.open + len(data)
        return data

    def look(self, data: bytes) -> None:
        """Finds the failure's text and feeds the watcher, in what the cap leaves out too."""
        text = self.carry + data
        end = text.rfind(b"\n") + 1
        whole, self.carry = text[:end], text[end:][-LINE:]
        if self.failure is not None and self.failure in whole:
            at = whole.find(self.failure)
            line = whole[whole.rfind(b"\n", 0, at) + 1 : whole.find(b"\n", at)]
            self.failure_seen, self.failure = line[-LINE:].decode("utf-8", "replace"), None
        if self.watch is not None:
            for line in whole.split(b"\n"):
                if self.watch is None:
                    break
                self.watch(line)

    def to_head(self, text: bytes) -> Entry | None:
        """Writes what fits, whole lines of it; what does not is the beginning of the tail."""
        room = self.half - self.head_size
        fits = len(text) if len(text) <= room else text.rfind(b"\n", 0, room) + 1
        if fits:
            self.head_size += fits
            try:
                write(self.head, text[:fits])
            except OSError as error:
                self.broken = error
        if fits == len(text):
            return None
        self.full = True
        return (b"", text[fits:], False)

    def to_tail(self, entry: Entry) -> None:
        self.pending.append(entry)
        self.pending_size += size(entry)
        while self.pending_size > self.half and len(self.pending) > 1:
            self.pending_size -= size(self.pending.popleft())
            self.tail_size = -1  # between what lies on disk and what is pending something is missing now
        if self.due() <= 0:
            self.flush()

    def due(self) -> float:
        """Seconds until what is pending should be on disk."""
        return FLUSH_S - (time.monotonic() - self.flushed) if self.pending else 3600.0

    def flush(self) -> None:
        self.flushed = time.monotonic()
        try:
            if self.pending:
                self.to_disk()
        except OSError as error:
            self.broken = error
        self.pending.clear()
        self.pending_size = 0

    def to_disk(self) -> None:
        """Puts the tail on two files in turn, so that the last half of the cap is always there."""
        old, new = os.path.join(self.folder, "log.1"), os.path.join(self.folder, "log.2")
        if self.tail_size < 0:
            self.count(-1)
            remove(old)
            remove(new)
            self.tail_size = 0
        elif self.tail_size > self.half:
            self.count(-1)
            os.replace(new, old)
            self.tail_size = 0
        with opened(new, os.O_APPEND) as tail:
            while self.pending:
                self.tail_size += tail.write(render(self.pending.popleft()))
        self.count(self.tail_size)

    def count(self, newer: int) -> None:
        """Notes what was written so far, and how long `log.2` is with it: -1 while the files change places.

        So whoever reads along knows which bytes they hold.
        """
        with opened(os.path.join(self.folder, "log.bytes"), os.O_TRUNC) as file:
            file.write(b"%d %d" % (self.total, newer))

    def close(self) -> None:
        """Ends the last line."""
        if self.open:
            total = self.total
            self.add(b"\n")
            self.total = total
        self.flush()


def stamp() -> bytes:
    now = time.time()
    return b"%s.%03dZ " % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)).encode(), now % 1 * 1000)


def render(entry: Entry) -> bytes:
    mark, data, fresh = entry
    if not mark:
        return data
    body, end = (data[:-1], b"\n") if data.endswith(b"\n") else (data, b"")
    return (mark if fresh else b"") + body.replace(b"\n", b"\n" + mark) + end


def size(entry: Entry) -> int:
    """About the length of the rendered entry, and never less."""
    mark, data, _ = entry
    return len(data) + (STAMP * (data.count(b"\n") + 1) if mark else 0)


def opened(path: str, how: int) -> BinaryIO:
    """To be written. A pipe that the reproduction put there must not hold us up."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | how, 0o644), "wb")


def write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
