"""What happens to a bisection as Server-Sent Events (the HTML standard's), and a report that is waited for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from service.application.ports import StoreBusy
from service.domain.bisection import Event
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState
from service.doors.api import render
from service.doors.api.watching import Watcher, Watchers

MEDIA_TYPE = "text/event-stream"
HEADERS = {"X-Accel-Buffering": "no"}
#: Milliseconds until a browser that lost its connection asks again.
BEGIN = b"retry: 2000\n\n"
BEAT = b": waiting\n\n"
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    204: {"description": "As a stream: it has ended, and nothing has happened since."},
}
Wait = Annotated[
    str,
    Query(pattern=r"^([0-9]|[1-5][0-9]|60)s?$", description="Seconds until the answer at most, as in 30s; 60 at most."),
]
log = logging.getLogger(__name__)


async def _watchers(request: Request) -> Watchers:
    found: Watchers = request.app.state.watchers
    return found


WatchersOf = Annotated[Watchers, Depends(_watchers)]


class EventStream(StreamingResponse):
    """A reader that takes nothing for too long is left: it holds its place and the connection."""

    media_type = MEDIA_TYPE

    def __init__(self, pieces: AsyncGenerator[bytes], slow_s: float) -> None:
        super().__init__(pieces, headers=HEADERS)
        self._pieces, self._slow_s = pieces, slow_s

    async def stream_response(self, send: Send) -> None:
        async def sent(message: Message) -> None:
            async with asyncio.timeout(self._slow_s):
                await send(message)

        try:
            async with aclosing(self._pieces):
                await super().stream_response(sent)
        except TimeoutError:
            log.info("a watcher took nothing for %g s and is left", self._slow_s)


def asked_for(accept: str) -> bool:
    """By a header Accept."""
    return any(one.partition(";")[0].strip().lower() == MEDIA_TYPE for one in accept.split(","))


async def stream(watchers: Watchers, id: str, caller: str, after: int, state: BisectionState) -> EventStream:
    """`state`: as it was before; what came after that is among what follows. Errors: TooManyWatchers, before anything
    is sent."""
    pieces = _told(watchers, id, caller, after, state)
    begin = await anext(pieces)
    return EventStream(_joined(begin, pieces), watchers.limits.slow_s)


async def _joined(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


async def _told(watchers: Watchers, id: str, caller: str, after: int, state: BisectionState) -> AsyncGenerator[bytes]:
    with watchers.watching(id, caller, after) as watcher:
        yield BEGIN
        end = monotonic() + watchers.limits.longest_s
        while monotonic() < end:
            events = await _more(watcher)
            if events is None:
                await watcher.wait(watchers.limits.beat_s)
                yield BEAT
            elif events:
                state = _state(events, state)
                yield b"".join(_written(event) for event in events)
            elif state not in LIVE_BISECTIONS:
                yield f"event: end\ndata: {json.dumps({'state': str(state)})}\n\n".encode()
                return
            elif not await watcher.wait(watchers.limits.beat_s):
                yield BEAT


async def _more(watcher: Watcher) -> Sequence[Event] | None:
    """None where that is not known now."""
    try:
        return await watcher.more()
    except StoreBusy:
        return None


def _state(events: Sequence[Event], before: BisectionState) -> BisectionState:
    states = [str(event.data.get("state")) for event in events if event.kind == "state"]
    return BisectionState(states[-1]) if states else before


def _written(event: Event) -> bytes:
    """One line of data: JSON has no line ends."""
    return f"id: {event.id}\ndata: {render.event(event).model_dump_json()}\n\n".encode()


async def changed(
    watchers: Watchers, id: str, caller: str, wait_s: float, look: Callable[[], tuple[str, bool]], known: str | None
) -> str:
    """The version of a bisection (`Flow.version`) as soon as it is another one than `known`, or than now without one;
    when it has ended; or after `wait_s`. Errors: TooManyWatchers, StoreBusy, those of `look`."""
    end = monotonic() + wait_s
    with watchers.watching(id, caller) as watcher:
        version, live = await watcher.looks(look)
        known = known or version
        while live and version == known and (left := end - monotonic()) > 0:
            await watcher.wait(left)
            version, live = await watcher.looks(look)
    return version
