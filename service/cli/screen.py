"""How things look in a terminal: consoles, columns, ages, and text that came from elsewhere made harmless."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from service.domain.duration import spoken

if TYPE_CHECKING:
    from service.doors.api.views import ProbeView

STYLES = {
    "good": "green",
    "bad": "red",
    "skip": "yellow",
    "fault": "yellow",
    "found": "bold green",
    "suspects": "yellow",
    "refused": "red",
    "failed": "bold red",
    "cancelled": "dim",
}
#: Nothing is cut or wrapped for a program that reads along.
WIDE = 10_000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COLOURS = re.compile(r"(\x1b\[[0-9;]{0,30}m)")


def console(*, stderr: bool = False) -> Console:
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=WIDE)


def put(out: Console, part: RenderableType) -> None:
    """Prints it; for a program without the spaces that fill up a terminal's columns."""
    if out.is_terminal:
        out.print(part)
        return
    with out.capture() as rendered:
        out.print(part)
    out.file.writelines(f"{line.rstrip()}\n" for line in rendered.get().splitlines())
    out.file.flush()


def clean(text: str) -> str:
    """A commit's subject or a log line must not move the cursor or turn the writing round."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_lines(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))


def clean_log(pieces: Iterator[bytes]) -> Iterator[str]:
    """For a terminal: line by line, with colours and without any other control sequence."""
    return (_log_line(line) + "\n" for line in lines(pieces))


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Without their ends."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _log_line(line: bytes) -> str:
    parts = _COLOURS.split(line.decode("utf-8", "replace").rstrip("\r"))
    return "".join(part if _COLOURS.fullmatch(part) else clean(part) for part in parts)


def styled(word: str) -> Text:
    return Text(word, style=STYLES.get(word, ""))


def sha(full: str) -> Text:
    return Text(full[:10], style="cyan")


def pairs() -> Table:
    """A name and its value a row."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def columns(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in names[:-1]:
        table.add_column(name, no_wrap=True)
    table.add_column(names[-1], overflow="fold")
    return table


def since(at: datetime | None) -> str:
    return spoken(max((datetime.now(UTC) - at).total_seconds(), 0.0)) if at else ""


def ago(at: datetime) -> str:
    return f"{since(at)} ago"


def between(start: datetime | None, end: datetime | None) -> str:
    return spoken(max((end - start).total_seconds(), 0.0)) if start and end else ""


def took(probe: ProbeView) -> str:
    """The run's own time; without one, from start to end as the service saw them."""
    if probe.outcome is not None and probe.outcome.phases:
        return spoken(max(phase.at_s + phase.seconds for phase in probe.outcome.phases))
    return between(probe.started_at, probe.finished_at)


def first_line(text: str) -> str:
    return clean(text.partition("\n")[0])


def when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
