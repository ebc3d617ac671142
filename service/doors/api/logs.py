"""Logs as answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from service.application.queries import LogStream
from service.doors.api import live

Follow = Annotated[bool, Query(description="As it is written: what comes, for as long as it runs, or waits to run.")]
LOG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log."}
}


def sent_log(found: LogStream) -> Response:
    """The first piece is read before anything is sent, so that a missing file is a 404 and not a broken answer."""
    pieces: Iterator[bytes] = iter(found.pieces)
    first = next(pieces, b"")
    return StreamingResponse(chain([first], live.to_the_end(pieces)), media_type=live.TEXT)
