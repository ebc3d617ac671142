"""One log of the parts that inside.py leaves: the head, a line that says what was left out, the tail."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from worker.errors import fault_of
from worker.run.job import Job, open_output

#: Length of the time stamp and the blank before each line, and the length at which inside.py cuts lines.
STAMP = 25
LINE = 64 * 1024
_STAMPED = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_CUT_LINE = re.compile(rb"^[^\n]{%d}\n" % (STAMP + LINE), re.MULTILINE)


@dataclass(frozen=True)
class KeptLog:
    """`bytes`: what the run wrote; `cut`: the middle is missing in the file."""

    path: Path
    bytes: int
    cut: bool


def append(log: Path, *lines: str) -> None:
    """Writes lines of ours, with the time stamp of now."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    with log.open("a", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{stamp} {line}\n" for line in lines)


def assemble(job: Job, total: int | None, cap: int) -> KeptLog:
    """Puts the parts into the job's `log`. `total`: what the run wrote, None when it did not live to say.

    Errors: NodeFault. Holds about `cap` bytes in memory.
    """
    head = _part(job, "log", cap)
    tail = (_part(job, "log.1", cap) + _part(job, "log.2", cap))[-max(cap // 2, 1) :]
    known = _raw(head) + _raw(tail)
    if total is None:
        total = max(_count(job), known)
    cut = total > known and bool(tail)
    if cut:
        head, tail = head[: head.rfind(b"\n") + 1], _from_line(tail)
        left_out = total - _raw(head) - _raw(tail)
        tail = _stamp(head, tail) + b"[firstbad: %d bytes left out here]\n" % left_out + tail
    path = job.root / "log"
    try:
        with path.open("wb") as whole:
            whole.write(head)
            whole.write(tail)
    except OSError as error:
        raise fault_of(error, "writing the log") from error
    return KeptLog(path, total, cut)


def _part(job: Job, name: str, most: int) -> bytes:
    """The last `most` bytes at most, whatever the sandbox made of the file."""
    file = open_output(job, name)
    if file is None:
        return b""
    with file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most) if name != "log" else 0)
        return file.read(most)


def _count(job: Job) -> int:
    text = _part(job, "log.bytes", 20)
    return int(text) if text.isdigit() else 0


def _from_line(tail: bytes) -> bytes:
    """Without the rest of a line whose beginning is missing."""
    return tail if _STAMPED.match(tail) or b"\n" not in tail else tail[tail.index(b"\n") + 1 :]


def _raw(text: bytes) -> int:
    """How many bytes the run wrote for this part: without time stamps and the line ends that cut long lines."""
    if not text:
        return 0
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    stamps = lines if _STAMPED.match(text) else lines - 1
    return len(text) - STAMP * stamps - sum(1 for _ in _CUT_LINE.finditer(text))


def _stamp(head: bytes, tail: bytes) -> bytes:
    """Of the line after what was left out, else of the one before it."""
    found = _STAMPED.match(tail) or _STAMPED.match(head, head.rfind(b"\n", 0, len(head) - 1) + 1)
    return found.group() if found else b""
