"""Logs as answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from service.application.queries import LogStream
from service.doors.api import live, problems
from service.doors.api.ranges import Asked, NoSuchRange

Follow = Annotated[bool, Query(description="As it is written: what comes, for as long as it runs, or waits to run.")]
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_RANGE = {"Content-Range": {"schema": {"type": "string"}, "description": "Which bytes of how many."}}
LOG: dict[int | str, dict[str, Any]] = {
    200: {"content": _TEXT, "description": "The log."},
    206: {"content": _TEXT, "description": "The bytes of it that `Range` asks for.", "headers": _RANGE},
}
_ACCEPTED = {"Accept-Ranges": "bytes"}


def sent_log(read: Callable[[], LogStream], asked: Asked | None) -> Response:
    """`read` opens it anew. The first piece is read before anything is sent, so that a missing file is a 404 and not a
    broken answer."""
    if asked is not None:
        return _part(read, asked)
    return _streamed(iter(read().pieces), 200, _ACCEPTED)


def _part(read: Callable[[], LogStream], asked: Asked) -> Response:
    """Read once to count, as what is kept compressed does not tell its size, and once more to be sent."""
    size = sum(map(len, read().pieces))
    try:
        part = asked.within(size)
    except NoSuchRange as error:
        told = {**_ACCEPTED, "Content-Range": f"bytes */{size}"}
        return problems.response(problems.of_user_error(error, asked.path), told)
    told = {**_ACCEPTED, "Content-Range": f"bytes {part.start}-{part.stop - 1}/{size}"}
    return _streamed(_cut(read().pieces, part), 206, told)


def _streamed(pieces: Iterator[bytes], status: int, headers: dict[str, str]) -> Response:
    first = next(pieces, b"")
    return StreamingResponse(chain([first], live.to_the_end(pieces)), status, headers, live.TEXT)


def _cut(pieces: Iterator[bytes], part: range) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if wanted := piece[max(0, part.start - at) : max(0, part.stop - at)]:
            yield wanted
        at += len(piece)
        if at >= part.stop:
            return
