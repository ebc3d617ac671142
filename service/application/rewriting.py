"""A script without some of its parts, in its own words otherwise; and how a part is quoted in a note."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from service.application.shell import Part, Script, Statement

LONGEST_QUOTE = 80
_PASSWORD = re.compile(r"(://)[^/@\s]+@")


def without(script: Script, kept: Collection[Part], rewritten: Mapping[int, str]) -> str:
    """Only the parts that are kept, those whose beginnings are in `rewritten` as it says. Lines of which nothing is
    left go, too."""
    data = script.text.encode()
    starts = {part.start for part in kept}
    for start, end, text in reversed(list(_edits(script.statements, starts, rewritten))):
        before, after = data[:start], data[end:]
        if not text:
            before, after = _closed(before, after)
        data = before + text.encode() + after
    return data.decode()


def _edits(
    statements: Iterable[Statement], kept: Collection[int], rewritten: Mapping[int, str]
) -> Iterator[tuple[int, int, str]]:
    for statement in statements:
        parts = [part for part in statement.parts if part.start in kept]
        changed = any(part.start in rewritten for part in parts)
        if not parts:
            yield statement.start, statement.stop, ""
        elif changed or len(parts) < len(statement.parts):
            text = " && ".join(rewritten.get(part.start, part.text) for part in parts)
            yield statement.start, statement.stop if statement.background else statement.end, text


def _closed(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Without the line of what went, where that is empty now."""
    line = before.rpartition(b"\n")[2]
    if line.strip():
        return before, after
    rest = after.lstrip(b" \t")
    return before[: len(before) - len(line)], rest[1:] if rest.startswith(b"\n") else rest


def listed(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(map(quoted, texts)))


def quoted(text: str) -> str:
    """One line of it, without what logs in somewhere."""
    first, *more = re.sub(r"\s*\\\n\s*", " ", text.strip()).split("\n")
    line = _PASSWORD.sub(r"\1***@", first) + (" …" if more else "")
    return f"`{line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + '…'}`"
