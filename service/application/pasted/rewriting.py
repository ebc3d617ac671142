"""A script without some of its parts, in its own words otherwise; and how a part is quoted in a note."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from service.application.pasted.shell import Part, Script, Statement

LONGEST_QUOTE = 80
MOST_LISTED = 20
#: Begun only where white space begins, which is read once then.
_JOINED = re.compile(r"(?<!\s)\s*(?:\\\n\s*)+")
_PASSWORD = re.compile(r"(://)[^/@\s]+@")


def without(script: Script, kept: Collection[Part], rewritten: Mapping[int, str]) -> str:
    """Only the parts that are kept, those whose beginnings are in `rewritten` as it says. Lines of which nothing is
    left go, too."""
    data = script.text.encode()
    starts = _with_comments(script, {part.start for part in kept})
    for start, end, text in reversed(list(_edits(script.statements, starts, rewritten))):
        before, after = data[:start], data[end:]
        if not text:
            before, after = _closed(before, after)
        data = before + text.encode() + after
    return data.decode()


def _with_comments(script: Script, starts: set[int]) -> set[int]:
    """A comment on the line of a part goes where that part goes."""
    data = script.text.encode()
    for part, comment in pairwise(script.parts):
        if comment.is_comment and b"\n" not in data[part.end : comment.start]:
            starts = starts | {comment.start} if part.start in starts else starts - {comment.start}
    return starts


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
    """Without the line of what went, where that is empty now, and without a second empty line there."""
    line = before.rpartition(b"\n")[2]
    rest = after.lstrip(b" \t")
    if line.strip():
        return (before.rstrip(b" \t"), rest) if rest[:1] in (b"", b"\n") else (before, after)
    before = before[: len(before) - len(line)]
    rest = rest[1:] if rest.startswith(b"\n") else rest
    return before, rest.lstrip(b"\n") if before[-2:] in (b"", b"\n\n") else rest


def listed(texts: Iterable[str]) -> str:
    return few(map(quoted, texts))


def few(texts: Iterable[str]) -> str:
    """Each once, and of many only the first."""
    each = list(dict.fromkeys(texts))
    more = f" and {len(each) - MOST_LISTED} more" if len(each) > MOST_LISTED else ""
    return ", ".join(each[:MOST_LISTED]) + more


def quoted(text: str) -> str:
    """One line of it, without what logs in somewhere."""
    first, *more = _JOINED.sub(" ", text.strip()).split("\n")
    line = _PASSWORD.sub(r"\1***@", first) + (" …" if more else "")
    return f"`{line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + '…'}`"
