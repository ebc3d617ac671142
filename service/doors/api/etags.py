"""What a client knows of a bisection already, by the tag of what is kept of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header

IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", max_length=1000, description="The `ETag` that is known already.")
]
_TAG = {"ETag": {"schema": {"type": "string"}, "description": "Of what is kept of the bisection."}}
TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": _TAG}, 304: {"description": "It is still as it was."}}


def written(version: str) -> str:
    return f'"{version}"'


def known(header: str | None) -> frozenset[str]:
    """Of a header: tags are compared weakly (RFC 9110, 13.1.2)."""
    return frozenset(one.strip().removeprefix("W/") for one in (header or "").split(",") if one.strip())


def version_of(tags: frozenset[str]) -> str | None:
    """None: there is none, or more than one."""
    return next(iter(tags)).strip('"') if len(tags) == 1 else None
