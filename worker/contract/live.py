"""What goes over a live channel: pieces of a log, each with its place, so that a reader knows what it has already."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """`at`: how much of this stream came before the text. Another `stream` begins anew."""

    stream: str
    at: int
    text: bytes

    def packed(self) -> bytes:
        return b"%s %d\n" % (self.stream.encode("ascii"), self.at) + self.text

    @staticmethod
    def unpacked(message: bytes) -> Piece:
        """Errors: ValueError."""
        head, _, text = message.partition(b"\n")
        stream, _, at = head.partition(b" ")
        return Piece(stream.decode("ascii"), int(at), text)
