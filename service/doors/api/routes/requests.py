"""What a request comes to."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from service.domain.access import Caller, Scope
from service.doors.api import render, views
from service.doors.api.bodies import submission
from service.doors.api.document import parse
from service.doors.api.openapi import request_body
from service.doors.api.problems import responses
from service.doors.api.sent import Sent, who
from service.doors.parameters import FlowOf

router = APIRouter()


@router.post(
    "/requests",
    operation_id="complete",
    summary="See what a request comes to, and begin nothing",
    description="Takes what starting a bisection takes and refuses the same. `notes` tells what was done to a pasted "
    "script.",
    response_model=views.RequestView,
    responses=responses(403, 413, 415, 422),
    openapi_extra=request_body(),
)
def complete(request: Request, flow: FlowOf, sent: Sent) -> Any:
    body, media_type = sent
    return render.request(flow.draft(submission(parse(body, media_type)), Caller(who(request), Scope.ADMIN)))
