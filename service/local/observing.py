"""What a probe's log shows: how it failed, in a form that another run of the same failure has too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.domain.evidence import Frame, Sign, Signature, Told, Verdict
from worker.observe import shown, told

LAST_LINES = 5
#: Of a line that is longer, so much is looked at.
LONGEST_LINE = 1 << 16


@dataclass(frozen=True)
class Observed:
    signature: Signature | None = None
    signs: tuple[Sign, ...] = ()
    told: Told | None = None
    last_lines: tuple[str, ...] = ()


def observed(log: Path, *, hang: bool) -> Observed:
    found = shown(_lines(log), (), hang=hang)
    said, last = None, list[str]()
    for line in _lines(log):
        said = told(line) or said
        if line.strip():
            last = [*last[1 - LAST_LINES :], line.decode("utf-8", "replace")[:200]]
    mine = found.signature
    return Observed(
        None
        if mine is None
        else Signature(
            str(mine.kind),
            mine.type,
            mine.message,
            tuple(Frame(frame.file, frame.function) for frame in mine.frames),
            tuple(Frame(frame.file, frame.function) for frame in mine.outer),
            mine.line,
            mine.said,
        ),
        tuple(Sign(sign.rule, sign.said, sign.line, sign.root) for sign in found.signs),
        None if said is None else Told(Verdict(said.verdict), said.reason),
        tuple(last),
    )


def _lines(log: Path) -> Iterator[bytes]:
    with log.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            yield line.rstrip(b"\n")
