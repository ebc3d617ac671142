"""One log of the parts that inside.py leaves: the head, a line that says what was left out, the tail. In blocks."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import zstandard

from worker.errors import fault_of
from worker.run.job import Job, open_output

#: Length of the time stamp and the blank before each line, and the length at which inside.py cuts lines.
STAMP = 25
LINE = 64 * 1024
#: No line of ours is longer, with its stamp and its end.
LONGEST = STAMP + LINE + 1
BLOCK = 1024 * 1024
STAMPED = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_CUT_LINE = re.compile(rb"^[^\n]{%d}\n" % (STAMP + LINE), re.MULTILINE)


@dataclass(frozen=True)
class KeptLog:
    """`bytes`: what the run wrote; `cut`: the middle is missing in the file."""

    path: Path
    bytes: int
    cut: bool


@dataclass(frozen=True)
class Text:
    """Stretches of files, each from one offset to another, one after another. Whoever wrote them may go on."""

    stretches: tuple[tuple[BinaryIO, int, int], ...] = ()

    @property
    def size(self) -> int:
        return sum(end - start for _, start, end in self.stretches)

    def part(self, start: int, end: int) -> Text:
        found, at = [], 0
        for file, first, last in self.stretches:
            low, high = max(first, first + start - at), min(last, first + end - at)
            if low < high:
                found.append((file, low, high))
            at += last - first
        return Text(tuple(found))

    def last(self, most: int) -> Text:
        return self.part(max(0, self.size - most), self.size)

    def blocks(self) -> Iterator[bytes]:
        """Errors: NodeFault."""
        for file, start, end in self.stretches:
            while start < end and (block := _read(file, min(BLOCK, end - start), start)):
                start += len(block)
                yield block

    def read(self) -> bytes:
        return b"".join(self.blocks())


def _read(file: BinaryIO, most: int, at: int) -> bytes:
    try:
        return os.pread(file.fileno(), most, at)
    except OSError as error:
        raise fault_of(error, "reading the log") from error


def append(log: Path, *lines: str) -> None:
    """Writes lines of ours, with the time stamp of now."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    with log.open("a", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{stamp} {line}\n" for line in lines)


def assemble(job: Job, total: int | None, cap: int) -> KeptLog:
    """Puts the parts into the job's `log`. `total`: what the run wrote, None when it did not live to say.

    Errors: NodeFault.
    """
    path = job.root / "log"
    with contextlib.ExitStack() as stack:
        head = parts(job, stack, "log").part(0, cap)
        tail = parts(job, stack, "log.1", "log.2").last(max(cap // 2, 1))
        known = raw(head) + raw(tail)
        if total is None:
            counted = count(job)
            total = max(counted[0] if counted else 0, known)
        cut = total > known and tail.size > 0
        between = b""
        if cut:
            head, tail = _whole_lines(head), from_line(tail)
            left_out = total - raw(head) - raw(tail)
            between = _stamp(head, tail) + b"[firstbad: %d bytes left out here]\n" % left_out
        try:
            with path.open("wb") as whole:
                whole.writelines(head.blocks())
                whole.write(between)
                whole.writelines(tail.blocks())
        except OSError as error:
            raise fault_of(error, "writing the log") from error
    return KeptLog(path, total, cut)


def compress(plain: Path, into: Path) -> None:
    """As one frame of zstd, which begins with how long the text is and ends with its checksum. Errors: NodeFault."""
    try:
        with plain.open("rb") as text, into.open("wb") as file:
            size = os.fstat(text.fileno()).st_size
            with zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, size=size, closefd=False) as frame:
                shutil.copyfileobj(text, frame, BLOCK)
    except (OSError, zstandard.ZstdError) as error:
        failed = error if isinstance(error, OSError) else OSError(str(error))
        raise fault_of(failed, f"compressing {plain.name}") from error


def parts(job: Job, stack: contextlib.ExitStack, *names: str) -> Text:
    """The files of these names, as long as they are now, whatever the sandbox made of them. Errors: NodeFault."""
    files = [stack.enter_context(file) for name in names if (file := open_output(job, name)) is not None]
    return Text(tuple((file, 0, os.fstat(file.fileno()).st_size) for file in files))


def count(job: Job) -> tuple[int, int] | None:
    """What the run had written when the tail was last put on disk, and how long its newer file was then.

    -1 while the files of the tail change places; None before there is a tail.
    """
    file = open_output(job, "log.bytes")
    if file is None:
        return None
    with file:
        numbers = file.read(50).split()
    known = len(numbers) == 2 and numbers[0].isdigit() and numbers[1].removeprefix(b"-").isdigit()
    return (int(numbers[0]), int(numbers[1])) if known else None


def raw(text: Text) -> int:
    """How many bytes the run wrote for this part: without time stamps and the line ends that cut long lines."""
    lines = cuts = 0
    first = last = b""
    for block in _by_lines(text.blocks()):
        first, last = first or block[:STAMP], block[-1:]
        lines += block.count(b"\n")
        cuts += _cuts(block)
    lines += last != b"\n"
    stamps = lines if STAMPED.match(first) else lines - 1
    return text.size - STAMP * stamps - cuts if last else 0


def _cuts(block: bytes) -> int:
    """Of lines that inside.py cut. Few blocks hold a line of such a length, which is seen faster than looked for."""
    half = LINE // 2
    if all(block.find(b"\n", at, at + half) >= 0 for at in range(0, len(block) - half, half)):
        return 0
    return sum(1 for _ in _CUT_LINE.finditer(block))


def _by_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same in blocks that end with lines, but for the last one and for lines that are none of ours."""
    rest = b""
    for block in blocks:
        text = rest + block
        end = text.rfind(b"\n") + 1
        if end == 0 and len(text) > LONGEST:
            end = len(text)
        rest = text[end:]
        if end:
            yield text[:end]
    if rest:
        yield rest


def _whole_lines(head: Text) -> Text:
    """Without the beginning of a line whose rest is missing."""
    window = head.last(LONGEST).read()
    end = window.rfind(b"\n") + 1
    return head.part(0, head.size - len(window) + end) if end or len(window) < LONGEST else head


def from_line(tail: Text) -> Text:
    """Without the rest of a line whose beginning is missing."""
    window = tail.part(0, LONGEST).read()
    end = window.find(b"\n") + 1
    return tail if STAMPED.match(window) or not end else tail.part(end, tail.size)


def _stamp(head: Text, tail: Text) -> bytes:
    """Of the line after what was left out, else of the one before it."""
    before = head.last(2 * LONGEST).read()
    found = STAMPED.match(tail.part(0, STAMP).read()) or STAMPED.match(before, before.rfind(b"\n", 0, -1) + 1)
    return found.group() if found else b""
