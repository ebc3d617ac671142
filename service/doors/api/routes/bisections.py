"""Bisections: begun, listed and looked at."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from service.domain.access import Caller, Scope
from service.domain.lifecycle import BisectionState
from service.doors import paths
from service.doors.api import render, views
from service.doors.api.bodies import submission
from service.doors.api.document import parse
from service.doors.api.openapi import request_body
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId, Key, Limit, Sent, who
from service.doors.parameters import FlowOf

router = APIRouter()


@router.post(
    "/bisections",
    operation_id="submit",
    summary="Start a bisection",
    description="Takes JSON or YAML. It answers at once; the refs are looked up afterwards, and what is wrong "
    "with them shows as state `refused` with a `problem`. Sent again with the same `Idempotency-Key`, the same request "
    "is answered with the bisection that it began.",
    status_code=201,
    response_model=views.BisectionView,
    responses={**responses(403, 413, 415, 422), 201: {"headers": {"Location": {"schema": {"type": "string"}}}}},
    openapi_extra=request_body(),
)
def submit(request: Request, answer: Response, flow: FlowOf, sent: Sent, key: Key = None) -> Any:
    body, media_type = sent
    made = flow.submit(submission(parse(body, media_type)), Caller(who(request), Scope.ADMIN), key)
    answer.headers["Location"] = paths.bisection(made.id)
    return render.bisection(made)


@router.get(
    "/bisections",
    operation_id="listBisections",
    summary="List bisections, newest first",
    response_model=views.BisectionList,
    responses=responses(422),
)
def list_bisections(
    flow: FlowOf,
    state: Annotated[list[BisectionState], Query(description="Only those in one of these states.")] = [],  # noqa: B006
    limit: Limit = 50,
) -> Any:
    return {"items": [render.bisection(each) for each in flow.bisections(frozenset(state), limit)]}


@router.get(
    "/bisections/{id}",
    operation_id="getBisection",
    summary="The report on a bisection",
    response_model=views.ReportView,
    responses=responses(404, 422),
)
def get_bisection(id: BisectionId, flow: FlowOf) -> Any:
    return render.report(flow.report(id))
