"""Lines of an output that look like what was looked for in vain."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_LINES = 3
#: Of a line that is looked at, and of it that is shown.
LOOKED, SHOWN = 400, 120
#: What is no text of a pattern: classes of characters, groups' names, what stands for a class, and repetitions.
_SYNTAX = re.compile(r"\[[^\]]*\]|\(\?P?<\w+>|\(\?[a-zA-Z]*:?|\\[A-Za-z]|\{\d*,?\d*\}")
_WORD = re.compile(r"[A-Za-z]{2,}")


def words_of(wanted: str) -> frozenset[str]:
    """Of a pattern, a path or a column."""
    return frozenset(word.lower() for word in _WORD.findall(_SYNTAX.sub(" ", wanted)))


def alike(text: str, words: frozenset[str]) -> tuple[str, ...]:
    """The lines that share most of the words, those with a number first, in the order in which they were printed."""
    best: dict[str, tuple[int, bool, int]] = {}
    for number, line in enumerate(_lines(text)):
        low = line.lower()
        shared = sum(word in low for word in words)
        if shared:
            best[line[:SHOWN]] = (shared, any(char.isdigit() for char in line), number)
        if len(best) > 1000:
            best = dict(_chosen(best))
    return tuple(sorted((line for line, _ in _chosen(best)), key=lambda line: best[line][2]))


def _chosen(best: dict[str, tuple[int, bool, int]]) -> list[tuple[str, tuple[int, bool, int]]]:
    return sorted(best.items(), key=lambda each: each[1], reverse=True)[:MOST_LINES]


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        shown = line[:LOOKED].strip()
        if shown:
            yield shown
