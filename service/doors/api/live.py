"""Answers that go on for as long as a run does, or a reader wants: each takes a thread only now and then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import anyio
from anyio import to_thread
from fastapi.responses import StreamingResponse

from service.application.ports import QueueUnavailable, StoreBusy
from service.domain.errors import UserError

TEXT = "text/plain; charset=utf-8"
#: Threads that wait for what comes, apart from those that all other requests need. With more readers each waits longer.
_waiting = anyio.CapacityLimiter(64)


def followed(pieces: Iterator[bytes]) -> StreamingResponse:
    """Sends each piece as it comes. Empty ones tell that nothing did: then it is seen whether anybody still reads."""
    return StreamingResponse(_sent(to_the_end(pieces)), media_type=TEXT, headers={"X-Accel-Buffering": "no"})


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    end = object()
    try:
        while (piece := await to_thread.run_sync(next, pieces, end, limiter=_waiting)) is not end:
            assert isinstance(piece, bytes)
            if piece:
                yield piece
    finally:
        # A reader that went away cancels this, and the run must know that nobody watches.
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_close, pieces, limiter=_waiting)


def _close(pieces: Iterator[bytes]) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()


def to_the_end(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """What ends too early says so as its last line; that the answer breaks off tells programs."""
    try:
        yield from pieces
    except (UserError, StoreBusy, QueueUnavailable) as error:
        yield f"\n[firstbad: {error}]\n".encode()
        raise
