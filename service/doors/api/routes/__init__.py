"""The routes under /api/v1: parse, call one function of the flow, render. The flow blocks, so they run in threads."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from service.doors import paths
from service.doors.api.routes import (
    actions,
    bisections,
    builds,
    events,
    metric,
    nodes,
    probes,
    recipes,
    report,
    texts,
    tokens,
    verdicts,
    webhooks,
)
from service.doors.api.sent import from_here

#: In the order in which they stand in the OpenAPI document.
_PARTS = (
    bisections,
    texts,
    actions,
    verdicts,
    report,
    metric,
    events,
    probes,
    builds,
    nodes,
    recipes,
    tokens,
    webhooks,
)

router = APIRouter(prefix=paths.API, dependencies=[Depends(from_here)])
for _part in _PARTS:
    router.include_router(_part.router)
