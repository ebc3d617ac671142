"""Bisections: begun, listed and looked at."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from service.domain.access import Scope
from service.domain.lifecycle import BisectionState
from service.doors import paths
from service.doors.api import previews, render, views
from service.doors.api.access import CallerOf, needs
from service.doors.api.bodies import submission
from service.doors.api.document import parse
from service.doors.api.openapi import request_body
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId, Key, Limit, Sent
from service.doors.api.views.previews import DryRunView
from service.doors.parameters import FlowOf

router = APIRouter()
DryRun = Annotated[bool, Query(description="Tell what it would come to, and begin nothing.")]


@router.post(
    "/bisections",
    dependencies=[needs(Scope.SUBMIT)],
    operation_id="submit",
    summary="Start a bisection",
    description="Takes JSON or YAML. It answers at once; the refs are looked up afterwards, and what is wrong "
    "with them shows as state `refused` with a `problem`. Sent again with the same `Idempotency-Key`, the same request "
    "is answered with the bisection that it began. With `dry_run` nothing is begun: the answer is what it would come "
    "to, its commits looked up for at most 20 seconds.",
    status_code=201,
    response_model=views.BisectionView | DryRunView,
    responses={
        **responses(403, 413, 415, 422),
        200: {"model": DryRunView, "description": "What it would come to."},
        201: {"model": views.BisectionView, "headers": {"Location": {"schema": {"type": "string"}}}},
    },
    openapi_extra=request_body(),
)
def submit(
    caller: CallerOf, answer: Response, flow: FlowOf, sent: Sent, key: Key = None, dry_run: DryRun = False
) -> Any:
    body, media_type = sent
    asked = submission(parse(body, media_type))
    if dry_run:
        answer.status_code = 200
        return previews.dry_run(flow.dry_run(asked, caller))
    made = flow.submit(asked, caller, key)
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
