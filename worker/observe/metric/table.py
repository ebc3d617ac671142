"""Numbers in a column of the last CSV table that was printed, whatever was printed before and after it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from worker.observe.metric.values import SHOWN, Found, NothingFound, NotThere, as_number

DELIMITERS = (",", "\t", ";")
#: Lines that a quoted cell may have, and characters of a line that is looked at.
CELL_LINES, LONGEST = 20, 64 * 1024
#: Of what is there instead, how many are named.
FEW = 8


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def by_column(text: str, name: str, where: Mapping[str, str]) -> list[Found]:
    """Errors: NothingFound."""
    table = _last(text.split("\n"), name)
    if table is None:
        raise NotThere(f"no CSV table with a column {name[:SHOWN]!r} was printed: correct its name, or print the table")
    missing = [column for column in where if column not in table.header]
    if missing:
        raise NothingFound(f"the last CSV table has no column {missing[0][:SHOWN]!r}, but {_few(table.header)}")
    if not table.rows:
        raise NothingFound(
            f"the last CSV table with a column {name[:SHOWN]!r} has no rows: did the check end before it printed one?"
        )
    left = table.rows
    for column, value in where.items():
        at = table.header.index(column)
        fitting = tuple(row for row in left if _same(row[at], value))
        if not fitting:
            there = dict.fromkeys(row[at] for row in left)
            raise NothingFound(f"no row of the last CSV table has {column} {value[:SHOWN]!r}, but {_few(tuple(there))}")
        left = fitting
    at = table.header.index(name)
    return [Found(row[at]) for row in left]


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:SHOWN]) for name in names[:FEW])
    return f"{shown}, …" if len(names) > FEW else shown


def _same(cell: str, wanted: str) -> bool:
    """Also when the one writes 512 and the other 512.0."""
    number = as_number(cell)
    return cell == wanted.strip() or (number is not None and number == as_number(wanted))


def _last(lines: list[str], name: str) -> Table | None:
    """The last one that has rows; else the last header, without any."""
    empty: Table | None = None
    end = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        header = _header(lines[at], name)
        if header is None:
            continue
        delimiter, cells = header
        table = Table(tuple(cell.strip() for cell in cells), tuple(_rows(lines, at + 1, end, delimiter, cells, name)))
        if table.rows:
            return table
        empty, end = empty or table, at
    return empty


def _header(line: str, name: str) -> tuple[str, list[str]] | None:
    """Its delimiter and cells, when it has that column."""
    if '"' not in name and name not in line or len(line) > LONGEST:
        return None
    for delimiter in DELIMITERS:
        cells = _cells(line.removeprefix("\ufeff"), delimiter)
        if name in (cell.strip() for cell in cells):
            return delimiter, cells
    return None


def _rows(
    lines: list[str], begin: int, end: int, delimiter: str, header: list[str], name: str
) -> Iterator[tuple[str, ...]]:
    """Lines with as many cells as the header. One that is written otherwise, or that holds no number after the table
    was interrupted, is a line of a log."""
    column = [cell.strip() for cell in header].index(name)
    spaced: bool | None = None
    together = True
    at = begin
    while at < end:
        record, at = _record(lines, at, end)
        cells = _cells(record, delimiter) if len(record) <= LONGEST else []
        if len(cells) != len(header):
            together = spaced is None
            continue
        spaced = _spaced(header) or _spaced(cells) if spaced is None else spaced
        cell = cells[column].strip()
        belongs = as_number(cell) is not None or (together and " " not in cell)
        # What is quoted is no sentence.
        if belongs and (spaced or record.startswith('"') or not _spaced(cells)):
            yield tuple(cell.strip() for cell in cells)


def _spaced(cells: list[str]) -> bool:
    """As in "words, and words"."""
    return any(cell.startswith(" ") for cell in cells[1:])


def _record(lines: list[str], at: int, end: int) -> tuple[str, int]:
    """A line, or several when a quoted cell has some, and where the next one begins."""
    quotes = lines[at].count('"')
    if quotes % 2:
        for last in range(at + 1, min(at + CELL_LINES, end)):
            quotes += lines[last].count('"')
            if quotes % 2 == 0:
                return "\n".join(lines[at : last + 1]), last + 1
    return lines[at], at + 1


def _cells(record: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader(record.splitlines(keepends=True), delimiter=delimiter), [])
    except csv.Error:
        return []
