"""A log's lines, each with a time stamp before it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

#: Of each line at most this much is taken into a message.
LONGEST = 2000

_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_stamp(line: bytes) -> bytes:
    """The line as the run wrote it, without its end."""
    found = _STAMP.match(line)
    return (line[found.end() :] if found else line).rstrip(b"\r\n")


def readable(line: bytes) -> str:
    """Text that is safe to store and to show: no colours, no controls, no NUL; what a progress bar showed last."""
    text = _COLOURS.sub("", line.decode("utf-8", "replace").rstrip("\r"))
    text = text.rpartition("\r")[2]
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)[:LONGEST]


def last_lines(lines: Iterable[bytes], count: int) -> tuple[str, ...]:
    """The last `count` lines, without their time stamps."""
    return tuple(readable(without_stamp(line)) for line in deque(lines, count))


def first_with(lines: Iterable[bytes], text: str | None) -> str | None:
    """The first line that holds the text, time stamps aside."""
    if not text:
        return None
    wanted = text.encode("utf-8", "replace")
    found = (without_stamp(line) for line in lines if wanted in line)
    return next((readable(line) for line in found if wanted in line), None)
