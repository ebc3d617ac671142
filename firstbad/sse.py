"""Server-Sent Events out of the bytes that arrive: the part of the HTML standard that names fields and ends events."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Message:
    """`id`: of the last event that had one. `kind`: "message" where nothing else is said."""

    id: str
    kind: str
    data: str


@dataclass
class Reader:
    id: str = ""
    _kind: str = ""
    _data: list[str] = field(default_factory=list)
    _rest: str = ""
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    def read(self, piece: bytes) -> Iterator[Message]:
        """Those that end in this piece; the rest is kept for the next one."""
        *lines, self._rest = self._split(self._rest + self._decoder.decode(piece))
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield Message(self.id, self._kind or "message", "\n".join(self._data))
                self._kind, self._data = "", []
            else:
                self._kind = ""

    def _split(self, text: str) -> list[str]:
        """A carriage return at the end may be half of a line's end."""
        if text.endswith("\r"):
            *lines, rest = _LINE_END.split(text[:-1])
            return [*lines, rest + "\r"]
        return _LINE_END.split(text)

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self.id = value
