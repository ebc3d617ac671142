"""Reads along while a log is being written, as much at a time as somebody may want to see of a flood."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from worker.run.job import Job
from worker.run.logs import LINE, STAMP, STAMPED, Text, count, from_line, parts, raw

#: Where a reader begins before the end, and the most that each turn gives: more than the longest line.
BEGIN = 64 * 1024
TURN = 96 * 1024


@dataclass(frozen=True)
class Seen:
    """`tail`: None before there is one. `total`: what the run had written when the tail ended so."""

    head: Text
    tail: Text | None = None
    total: int = 0


class Along:
    """Reads the log in `job` from BEGIN before its end; turns may be far apart. Errors of all: NodeFault.

    `cap`: the most bytes of its head, which are all looked at, whatever length the run gives that file.
    """

    def __init__(self, job: Job, cap: int) -> None:
        self._job, self._cap = job, cap
        #: An offset in the head; later how many of the bytes that the run wrote were given or left out.
        self._head: int | None = None
        self._raw = 0
        self._whole_line = True
        self._begun = False

    def more(self) -> bytes:
        """What came since the last turn, its end when it is a lot, with a line that counts what is left out."""
        with contextlib.ExitStack() as stack:
            seen = _look(self._job, self._cap, stack)
            if seen is None:
                return b""
            if not self._begun:
                self._begin(seen)
            return self._more(seen)

    def _begin(self, seen: Seen) -> None:
        self._begun = True
        tail = seen.tail or Text()
        if tail.size >= BEGIN:
            self._raw = seen.total - raw(from_line(tail.last(BEGIN)))
            return
        start = max(0, seen.head.size + tail.size - BEGIN)
        rest = seen.head.part(start, seen.head.size)
        self._head = seen.head.size - (from_line(rest) if start else rest).size

    def _more(self, seen: Seen) -> bytes:
        given = b""
        if self._head is not None:
            given = self._of_head(seen)
            if seen.tail is None or self._head < seen.head.size:
                return given
            self._head, self._raw = None, raw(seen.head)
        return given + (self._of_tail(seen.tail, seen.total) if seen.tail is not None else b"")

    def _of_head(self, seen: Seen) -> bytes:
        assert self._head is not None
        new = seen.head.part(self._head, seen.head.size)
        shown = from_line(new.last(TURN)) if new.size > TURN else new
        text = shown.read()
        if seen.tail is None:
            text = _settled(text, self._whole_line or shown is not new)
        left_out = raw(new.part(0, new.size - shown.size))
        self._head = seen.head.size - shown.size + len(text)
        return self._told(text, left_out)

    def _of_tail(self, tail: Text, total: int) -> bytes:
        wanted = total - self._raw
        if wanted <= 0:
            return b""
        window = from_line(tail.last(TURN)) if tail.size > TURN else tail
        text, given = _newest(window.read(), wanted)
        self._raw = total
        return self._told(text, wanted - given)

    def _told(self, text: bytes, left_out: int) -> bytes:
        if left_out > 0:
            text = b"[firstbad: %d bytes left out here]\n" % left_out + text
        if not self._whole_line and (left_out > 0 or STAMPED.match(text)):
            text = b"\n" + text
        if text:
            self._whole_line = text.endswith(b"\n")
        return text


def _look(job: Job, cap: int, stack: contextlib.ExitStack) -> Seen | None:
    """None while the files of the tail change places."""
    counted = count(job)
    if counted is None:
        return Seen(parts(job, stack, "log").part(0, cap))
    total, newer = counted
    old, new = parts(job, stack, "log.1"), parts(job, stack, "log.2")
    # Once they are open they may be renamed or removed, but were these still the ones that were counted?
    if newer < 0 or new.size < newer or count(job) != counted:
        return None
    return Seen(parts(job, stack, "log").part(0, cap), Text((*old.stretches, *new.part(0, newer).stretches)), total)


def _settled(text: bytes, whole_line: bool) -> bytes:
    """Without an end that may be half a time stamp. `whole_line`: the text begins with one."""
    start = text.rfind(b"\n") + 1
    return text[:start] if (start or whole_line) and len(text) - start <= STAMP else text


def _newest(text: bytes, wanted: int) -> tuple[bytes, int]:
    """The end of the text, up to so many bytes as the run wrote them; and how many of these it holds."""
    given, at = 0, len(text)
    while at and given < wanted:
        start = text.rfind(b"\n", 0, at - 1) + 1
        stamp = STAMP if STAMPED.match(text, start, at) else 0
        cut = at - start == STAMP + LINE + 1 and text[at - 1] == ord("\n")
        length = at - start - stamp - cut
        if given + length > wanted:
            return text[at - cut - (wanted - given) :], wanted
        given, at = given + length, start
    return text[at:], given
