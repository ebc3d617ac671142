"""Where a page of a list begins, as a text that a client gives back as it is, and the links to the next one."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from service.application.lists import Place
from service.domain.errors import BadRequest

Cursor = Annotated[
    str | None,
    Query(pattern=r"^[A-Za-z0-9_-]{1,600}$", description="Where the page begins: taken from `next` of the one before."),
]

_LINK = {"Link": {"schema": {"type": "string"}, "description": 'With rel="next": the next page, if there is one.'}}
LISTED: dict[int | str, dict[str, Any]] = {200: {"headers": _LINK}}


def written(of: str, place: Place | int | str) -> str:
    """`of`: the list, and its order: a cursor of one is none of another."""
    parts = [place[0].isoformat(), place[1]] if isinstance(place, tuple) else [place]
    text = json.dumps([of, *parts], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place(of: str, cursor: str | None) -> Place | None:
    """Errors: BadRequest."""
    if cursor is None:
        return None
    match _read(of, cursor):
        case [str(at), str(id)]:
            return _time(at), id
    raise _bad()


def number(of: str, cursor: str | None) -> int:
    """Errors: BadRequest."""
    if cursor is None:
        return 0
    match _read(of, cursor):
        case [int(found)] if 0 <= found < 2**31:
            return found
    raise _bad()


def name(of: str, cursor: str | None) -> str:
    """Errors: BadRequest."""
    if cursor is None:
        return ""
    match _read(of, cursor):
        case [str(found)]:
            return found
    raise _bad()


def next_page(request: Request, answer: Response, cursor: str | None) -> str | None:
    """Its path, with the same filters; said in a header too (RFC 8288). None: this is the last one."""
    if cursor is None:
        return None
    asked = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    path = f"{request.url.path}?{urlencode([*asked, ('cursor', cursor)])}"
    answer.headers["Link"] = f'<{path}>; rel="next"'
    return path


def _read(of: str, cursor: str) -> list[object]:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise _bad() from None
    if isinstance(found, list) and found[:1] == [of]:
        return found[1:]
    raise _bad()


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _bad() from None


def _bad() -> BadRequest:
    return BadRequest(
        "the cursor is none of this list",
        field="cursor",
        advice="take it from `next` of the page before, and leave the order as it was; or begin without one",
    )
