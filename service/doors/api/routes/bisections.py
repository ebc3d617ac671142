"""Bisections: begun, listed and looked at."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from service.application.flow import Flow
from service.application.lists import Order, Sought, place_of
from service.application.report import Report
from service.domain.access import Scope
from service.domain.lifecycle import BisectionState
from service.doors import paths
from service.doors.api import cursors, etags, previews, render, views
from service.doors.api.access import CallerOf, needs
from service.doors.api.bodies import submission
from service.doors.api.cursors import LISTED, Cursor
from service.doors.api.document import parse
from service.doors.api.etags import TAGGED, IfNoneMatch
from service.doors.api.events import Wait, WatchersOf, changed
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
    summary="List bisections, page by page, newest first",
    description="`next`, and a `Link` header, lead to the next page; what is begun meanwhile moves nothing.",
    response_model=views.BisectionList,
    responses={**responses(422), **LISTED},
)
def list_bisections(
    request: Request,
    answer: Response,
    flow: FlowOf,
    state: Annotated[list[BisectionState], Query(description="Only those in one of these states.")] = [],  # noqa: B006
    project: Annotated[str | None, Query(max_length=200, description="Only those of this recipe.")] = None,
    submitter: Annotated[str | None, Query(max_length=300, description="Only those of this caller.")] = None,
    text: Annotated[str, Query(max_length=200, description="Only those with it in what was asked for.")] = "",
    sort: Annotated[Order, Query(description="By beginning or end; with a minus the last first.")] = Order.NEWEST,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Any:
    of = f"bisections {sort}"
    found = flow.page(Sought(frozenset(state), project, submitter, text, sort), cursors.place(of, cursor), limit)
    after = cursors.written(of, place_of(found.items[-1], sort)) if found.more else None
    items = [render.bisection(each) for each in found.items]
    return {"items": items, "next": cursors.next_page(request, answer, after)}


@router.get(
    "/bisections/{id}",
    operation_id="getBisection",
    summary="The report on a bisection",
    description="Its `ETag` changes with the bisection: who sends it as `If-None-Match` gets 304 while nothing has. "
    "`wait` keeps the answer until it has changed or ended, or that time is over.",
    response_model=views.ReportView,
    responses={**responses(404, 422), **TAGGED},
)
async def get_bisection(
    id: BisectionId,
    caller: CallerOf,
    answer: Response,
    flow: FlowOf,
    watchers: WatchersOf,
    known: IfNoneMatch = None,
    wait: Wait = "0s",
) -> Any:
    tags = etags.known(known)
    if seconds := int(wait.removesuffix("s")):
        await changed(watchers, id, caller.name, seconds, partial(flow.version, id), etags.version_of(tags))
    tag, report = await to_thread.run_sync(_unless_known, flow, id, tags)
    if report is None:
        return Response(status_code=304, headers={"ETag": tag})
    answer.headers["ETag"] = tag
    return render.report(report)


def _unless_known(flow: Flow, id: str, tags: frozenset[str]) -> tuple[str, Report | None]:
    """The tag is read first: a report may be newer than it, and never older."""
    tag = etags.written(flow.version(id)[0])
    return tag, None if tag in tags or "*" in tags else flow.report(id)
