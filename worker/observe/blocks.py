"""A log in blocks of lines, so that what says nothing is passed over by the block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

import re2

#: A block ends with whichever comes first.
LINES, BYTES = 256, 1 << 20


@dataclass(frozen=True)
class Block:
    """`first`: the number of its first line. `text`: all of them, a line feed between each two."""

    first: int
    lines: list[bytes]
    text: bytes


class Filter:
    """Finds the lines that any of many patterns is in, in time that does not grow with their number."""

    def __init__(self, patterns: Iterable[str]) -> None:
        options = re2.Options()
        options.never_capture = True
        options.max_mem = 64 << 20
        # Bytes: a log may hold any.
        options.encoding = re2.Options.Encoding.LATIN1
        self._any = re2.compile(f"(?m){'|'.join(f'(?:{pattern})' for pattern in patterns)}".encode(), options)

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Filter:
        return cls(re2.escape(word) for word in words)

    def within(self, text: bytes) -> bool:
        return self._any.search(text) is not None

    def places(self, block: Block) -> Iterator[int]:
        """Of its lines, each once and from 0."""
        found = self._any.search(block.text)
        if found is None:
            return
        ends = list(accumulate(len(line) + 1 for line in block.lines))
        while found is not None:
            place = bisect_right(ends, found.start())
            yield place
            if place + 1 >= len(ends):
                return
            found = self._any.search(block.text, ends[place])


def blocks_of(lines: Iterable[bytes]) -> Iterator[Block]:
    """Whether lines have their ends or not."""
    rest, first = iter(lines), 1
    while block := _next(rest):
        yield Block(first, block, b"\n".join(block))
        first += len(block)


def _next(lines: Iterator[bytes]) -> list[bytes]:
    block: list[bytes] = []
    size = 0
    for line in islice(lines, LINES):
        block.append(line)
        size += len(line)
        if size >= BYTES:
            break
    return block
