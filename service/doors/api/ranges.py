"""Parts of what is sent, as RFC 9110, 14 has them: one range of bytes; where there are several, all of it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import re2
from fastapi import Depends, Header, Request

from service.domain.errors import UserError

_ONE = re2.compile(r"(?i)bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


class NoSuchRange(UserError):
    slug = "no-such-range"
    title = "There are no such bytes"
    status = 416


@dataclass(frozen=True)
class Asked:
    """`first` and `last`: positions, both inside; without `first`, `last` is how many there are from the end on.
    `path`: of the request."""

    path: str
    first: int | None
    last: int | None

    def within(self, size: int) -> range:
        """Errors: NoSuchRange."""
        end = size if self.last is None or self.first is None else min(size, self.last + 1)
        start = max(0, size - (self.last or 0)) if self.first is None else self.first
        if start >= end:
            raise NoSuchRange(
                f"it has {size} bytes, and none of those that were asked for",
                field="Range",
                advice=f"ask for bytes before {size}, or for all of it without Range",
            )
        return range(start, end)


def _asked(
    request: Request,
    wanted: Annotated[
        str | None,
        Header(alias="Range", max_length=1000, description="One range: `bytes=0-99`, `bytes=100-`, `bytes=-99`."),
    ] = None,
    if_range: Annotated[
        str | None, Header(alias="If-Range", max_length=1000, description="With it all is sent.")
    ] = None,
) -> Asked | None:
    """None for all of it: also where it is asked for in a way that is not known, and where it must be as it was, as
    what has ranges here has no tag."""
    found = _ONE.fullmatch(wanted or "") if if_range is None else None
    if found is None:
        return None
    first, last = (int(part) if part else None for part in found.groups())
    if (first is None and last is None) or (first is not None and last is not None and last < first):
        return None
    return Asked(request.url.path, first, last)


AskedRange = Annotated[Asked | None, Depends(_asked)]
