"""What a request brings: its body, what its path and query name, and who sent it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Path, Query, Request

from service.domain.errors import UserError
from service.doors.parameters import BISECTION


class OtherSite(UserError):
    slug = "other-site"
    title = "The request comes from another site"
    status = 403


async def from_here(request: Request) -> None:
    """A browser says by whose page it is made to ask, and a form of another site needs no body for some routes."""
    origin = request.headers.get("origin")
    if request.method == "GET" or origin is None or urlsplit(origin).netloc == request.headers.get("host"):
        return
    raise OtherSite(
        f"a page of {origin[:200]} asks for this",
        value=origin,
        field="Origin",
        advice="ask from a page of this service, or with a client that is no browser",
    )


async def _sent(request: Request) -> tuple[bytes, str]:
    """Body and media type. A form of another site can send only text/plain and form types, which `parse` refuses."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await request.body(), media_type


Sent = Annotated[tuple[bytes, str], Depends(_sent)]
BisectionId = Annotated[str, Path(pattern=BISECTION, description="Id of a bisection.")]
ProbeId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}\.[0-9]{1,9}$", description="Id of a probe.")]
BuildKey = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,128}$", description="Key of a build.")]
NodeName = Annotated[str, Path(pattern=r"^[^\x00-\x1f/]{1,253}$", description="Name of a node.")]
ProbeNumber = Annotated[int, Path(ge=1, le=999_999_999)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, description="Chosen anew for each request."),
]
Many = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
RecipeName = Annotated[str, Path(pattern=r"^[^\x00-\x1f/]{1,100}$", description="Name of a recipe.")]
After = Annotated[int, Query(ge=0, le=2**62, description="Only those with a greater id.")]
