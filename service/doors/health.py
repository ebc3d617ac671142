"""Whether the service is alive and ready, for those who start, watch and balance it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from service.application.health import Check
from service.doors.api import problems
from service.doors.api.views import Health
from service.doors.bounded import Bounded

#: Seconds in which each part must have answered.
WITHIN_S = 3.0
#: Without these nothing that is asked for is done. What waits for a worker is kept, so without one it is ready.
NEEDED = ("database", "queue", "control")
OK = "ok"


def router(checks: Mapping[str, Check], within_s: float = WITHIN_S) -> APIRouter:
    router = APIRouter()
    asked = {name: Bounded(check) for name, check in checks.items()}

    @router.get("/healthz", operation_id="alive", summary="The process answers", responses=problems.responses())
    async def alive() -> Health:
        return Health(status=OK)

    @router.get(
        "/readyz",
        operation_id="ready",
        summary="Every part that it needs works",
        response_model=Health,
        responses={
            **problems.responses(),
            503: {"model": Health, "description": "A part is down; `parts` says which."},
        },
    )
    async def ready() -> JSONResponse:
        said = await asyncio.gather(*(_said(check, within_s) for check in asked.values()))
        parts = dict(zip(asked, said, strict=True))
        up = all(parts.get(name, OK) == OK for name in NEEDED)
        health = Health(status=OK if up else "down", parts=parts)
        return JSONResponse(health.model_dump(), 200 if up else 503)

    return router


async def _said(check: Bounded[str | None], within_s: float) -> str:
    try:
        return await check(within_s) or OK
    except TimeoutError:
        return f"has not answered within {within_s:g} s"
