"""The number of one metric in one run's output, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from worker.observe.metric.alike import alike, words_of
from worker.observe.metric.document import by_path
from worker.observe.metric.pattern import by_pattern
from worker.observe.metric.table import by_column
from worker.observe.metric.values import Found, Measurement, NothingFound, NotThere, made

#: The end of the text is looked at.
MOST = 1024 * 1024
#: Of a unit that was printed; one that was asked for stays as it is.
UNIT = 30
_STAMP = re.compile(rb"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")


class Column(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def where(self) -> Mapping[str, str]: ...


class Metric(Protocol):
    """Exactly one of `pattern`, `json_path` and `csv` is given. `unit_path`: beside `json_path`."""

    @property
    def pattern(self) -> str | None: ...

    @property
    def json_path(self) -> str | None: ...

    @property
    def csv(self) -> Column | None: ...

    @property
    def unit(self) -> str: ...

    @property
    def unit_path(self) -> str | None: ...

    @property
    def aggregate(self) -> str | None: ...


def number_of(text: bytes, metric: Metric) -> Measurement:
    """The text as it was printed, or as a log with our time stamps keeps it. The unit: as it was printed, else the
    metric's."""
    text, cut = _end(text)
    # What rewrites its line, as a progress bar does, has written several.
    plain = _COLOURS.sub(b"", _STAMP.sub(b"", text)).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        if not plain.strip():
            longest = "its last line is longer than what is read"
            raise NothingFound(longest if cut else "nothing was printed: let the script or the check print the number")
        found = made(_found(plain, metric), metric.aggregate, _narrower(metric))
    except NothingFound as problem:
        return Measurement(
            unit=metric.unit, problem=f"{problem}{'; of the output the last 1 MiB was read' if cut else ''}"
        )
    return replace(found, unit=found.unit[:UNIT] or metric.unit)


def _end(text: bytes) -> tuple[bytes, bool]:
    """Its last lines, of which the first may be missing its beginning, and whether anything is."""
    if len(text) < MOST:
        return text, False
    text = text[-MOST:]
    return text[text.find(b"\n") + 1 :], True


def _found(text: bytes, metric: Metric) -> list[Found]:
    """Errors: NothingFound."""
    try:
        if metric.pattern is not None:
            return by_pattern(text, metric.pattern)
        words = text.decode("utf-8", "replace")
        if metric.csv is not None:
            return by_column(words, metric.csv.name, metric.csv.where)
        return by_path(words, metric.json_path or "", metric.unit_path)
    except NotThere as problem:
        raise NotThere(f"{problem}{_hint(text, metric)}") from problem


def _hint(text: bytes, metric: Metric) -> str:
    wanted = metric.csv.name if metric.csv is not None else metric.pattern or metric.json_path or ""
    lines = alike(text.decode("utf-8", "replace"), words_of(wanted))
    return f". It printed: {' / '.join(lines)}" if lines else ""


def _narrower(metric: Metric) -> str:
    if metric.csv is not None:
        return "choose rows by `where`"
    return f"make the {'pattern' if metric.pattern is not None else 'path'} narrower"
