"""Reads what workers compressed, in pieces and in bounded memory, and trusts neither its length nor its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import zstandard

ENDING = ".zst"
#: What a frame may expect of its reader's memory. Workers' logs ask for a quarter of it.
WINDOW_BYTES = 8 * 1024 * 1024
HEADER_BYTES = 18


class Damaged(Exception):
    """It is not what a worker wrote; says why."""


def plain(file: IO[bytes], piece_bytes: int, most: int) -> Iterator[bytes]:
    """The text of the one frame in `file`. Errors: Damaged, also before the first piece when it has over `most` bytes.

    A frame that gives less or more than it said in its header is damaged, as is one without such a number.
    """
    wanted = _length(file.read(HEADER_BYTES))
    if wanted > most:
        raise Damaged(f"it says that it holds {wanted} bytes, and no log has more than {most}")
    file.seek(0)
    reader = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES).stream_reader(file, closefd=False)
    given = 0
    try:
        while piece := reader.read(piece_bytes):
            given += len(piece)
            if given > wanted:
                raise Damaged(f"it holds more than the {wanted} bytes that it says")
            yield piece
    except (zstandard.ZstdError, MemoryError) as error:
        raise Damaged(f"after {given} of {wanted} bytes: {error}") from error
    if given < wanted:
        raise Damaged(f"it ends after {given} of {wanted} bytes")


def _length(header: bytes) -> int:
    try:
        length = int(zstandard.frame_content_size(header))
    except zstandard.ZstdError as error:
        raise Damaged("it is no zstd frame") from error
    if length < 0:
        raise Damaged("it does not say how long it is")
    return length
