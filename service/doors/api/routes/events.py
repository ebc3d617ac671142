"""What happened to a bisection, and what happens."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Response

from service.application.flow import Flow
from service.domain.lifecycle import LIVE_BISECTIONS
from service.doors.api import events, render, views
from service.doors.api.access import CallerOf
from service.doors.api.events import STREAM, WatchersOf
from service.doors.api.problems import responses
from service.doors.api.sent import After, BisectionId, Many
from service.doors.parameters import FlowOf

router = APIRouter()
Accept = Annotated[str, Header(description="`text/event-stream` for what happens as it does.")]
LastId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, le=2**62, description="Of a stream that goes on: as `after`.")
]


@router.get(
    "/bisections/{id}/events",
    operation_id="listEvents",
    summary="What happened to a bisection, oldest first, or what happens",
    description="As JSON what has happened. With `Accept: text/event-stream` that and all that happens, as "
    "Server-Sent Events: each with its id and as data what the JSON has, and one `end` when the bisection has ended.",
    response_model=views.EventList,
    responses={**responses(404, 422), **STREAM},
)
async def list_events(
    id: BisectionId,
    caller: CallerOf,
    flow: FlowOf,
    watchers: WatchersOf,
    after: After = 0,
    limit: Many = 1000,
    accept: Accept = "",
    last_id: LastId = None,
) -> Any:
    if not events.asked_for(accept):
        items = [render.event(each) for each in await to_thread.run_sync(flow.events, id, after, limit)]
        return {"items": items, "last": items[-1].id if items else after}
    seen = after if last_id is None else last_id
    state, more = await to_thread.run_sync(_standing, flow, id, seen)
    if state not in LIVE_BISECTIONS and not more and seen:
        # A browser would ask again and again.
        return Response(status_code=204)
    return await events.stream(watchers, id, caller.name, seen, state)


def _standing(flow: Flow, id: str, seen: int) -> Any:
    return flow.bisection(id).state, bool(flow.events(id, seen, 1))
