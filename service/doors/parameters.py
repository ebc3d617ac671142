"""What routes of all doors are given."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from service.application.flow import Flow

#: The form of a bisection's id.
BISECTION = r"^[0-9A-Za-z_-]{1,64}$"


async def _flow(request: Request) -> Flow:
    flow: Flow = request.app.state.flow
    return flow


FlowOf = Annotated[Flow, Depends(_flow)]
