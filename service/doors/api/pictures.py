"""Pictures, which are sent again only when they have changed."""

from __future__ import annotations

from fastapi import Response

from service.application.curve import Curve
from service.doors import charts

SVG = "image/svg+xml"
#: Kept by a browser, and asked for again each time it is shown.
CACHED = "private, no-cache"
#: Nothing in it may run or load anything, should somebody open it by itself.
POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"


def picture(found: Curve, known: str) -> Response:
    """`known`: the tags of what a client has, as If-None-Match gives them."""
    tag = charts.tag(found)
    headers = {
        "ETag": tag,
        "Cache-Control": CACHED,
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    if known.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(charts.draw(found), headers=headers, media_type=SVG)
