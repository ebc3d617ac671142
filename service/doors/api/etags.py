"""What a client knows of a bisection already, by the tag of what is kept of it."""

from __future__ import annotations

from typing import Annotated, Any

import re2
from fastapi import Header

from service.domain.errors import BadRequest

IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", max_length=1000, description="The `ETag` that is known already.")
]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description="The `ETag` of the report that the change is made for: 412 if the bisection has changed since.",
    ),
]
_TAGS = re2.compile(r'\*|(W/)?"[!#-)+-~]*"')
_TAG = {"ETag": {"schema": {"type": "string"}, "description": "Of what is kept of the bisection."}}
TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": _TAG}, 304: {"description": "It is still as it was."}}


def written(version: str) -> str:
    return f'"{version}"'


def known(header: str | None) -> frozenset[str]:
    """Of a header: tags are compared weakly (RFC 9110, 13.1.2)."""
    return frozenset(one.strip().removeprefix("W/") for one in (header or "").split(",") if one.strip())


def expected(header: str | None) -> str | None:
    """The versions that a header names, with commas between; a weak tag stays as it is, and is none of them
    (RFC 9110, 13.1.1). Errors: BadRequest."""
    if header is None:
        return None
    tags = [one.strip() for one in header.split(",") if one.strip()]
    if not tags or not all(_TAGS.fullmatch(one) for one in tags):
        raise BadRequest(
            "If-Match holds what is no ETag",
            value=header,
            field="If-Match",
            advice="send the ETag of the report as it came, with its quotes, or *",
        )
    return ", ".join(one.strip('"') for one in tags)


def version_of(tags: frozenset[str]) -> str | None:
    """None: there is none, or more than one."""
    return next(iter(tags)).strip('"') if len(tags) == 1 else None
