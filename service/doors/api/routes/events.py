"""What happened to a bisection."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.doors.api import render, views
from service.doors.api.problems import responses
from service.doors.api.sent import After, BisectionId
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/bisections/{id}/events",
    operation_id="listEvents",
    summary="What happened to a bisection, oldest first",
    response_model=views.EventList,
    responses=responses(404, 422),
)
def list_events(id: BisectionId, flow: FlowOf, after: After = 0) -> Any:
    items = [render.event(each) for each in flow.events(id, after)]
    return {"items": items, "last": items[-1].id if items else after}
