"""What a route asks of its caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request, params

from service.domain.access import Caller, Scope, covers
from service.domain.errors import Forbidden
from service.doors.api.sent import BisectionId
from service.doors.parameters import FlowOf


async def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


CallerOf = Annotated[Caller, Depends(_caller)]


def _at_least(wanted: Scope) -> Callable[..., Awaitable[None]]:
    async def check(caller: CallerOf) -> None:
        require(caller, wanted)

    return check


def needs(wanted: Scope) -> params.Depends:
    """For a route's `dependencies`. Errors: Forbidden."""
    return params.Depends(_at_least(wanted))


def _own(id: BisectionId, flow: FlowOf, caller: CallerOf) -> Caller:
    """Who may change the bisection that the path names. Errors: Forbidden, NotFound."""
    flow.may_change(id, caller)
    return caller


OwnerOf = Annotated[Caller, Depends(_own)]


def require(caller: Caller, wanted: Scope) -> None:
    """Errors: Forbidden."""
    if not covers(caller.scope, wanted):
        raise Forbidden(
            f"this needs the scope {wanted}, and {caller.name} has {caller.scope or 'none'}",
            value=str(caller.scope or ""),
            advice=f"use a token with the scope {wanted}",
        )
