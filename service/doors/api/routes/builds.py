"""Wheels and the logs of their builds."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from service.application.lists import Page
from service.domain.bisection import Build
from service.domain.lifecycle import BuildState
from service.doors.api import cursors, live, render, views
from service.doors.api.cursors import LISTED, Cursor
from service.doors.api.logs import LOG, Follow, sent_log
from service.doors.api.problems import responses
from service.doors.api.ranges import AskedRange
from service.doors.api.sent import BisectionId, BuildKey, Limit, Many
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/bisections/{id}/builds",
    operation_id="listBuilds",
    summary="The wheels of a bisection, and how each came about",
    response_model=views.BuildList,
    responses={**responses(404, 422), **LISTED},
)
def list_builds(
    id: BisectionId, request: Request, answer: Response, flow: FlowOf, limit: Many = 1000, cursor: Cursor = None
) -> Any:
    found = flow.build_page((), id, cursors.place("wheels", cursor), limit)
    return _page(request, answer, "wheels", found)


@router.get(
    "/builds",
    operation_id="listAllBuilds",
    summary="All wheels that were made or are, newest first",
    response_model=views.BuildList,
    responses={**responses(422), **LISTED},
)
def list_all_builds(
    request: Request,
    answer: Response,
    flow: FlowOf,
    state: Annotated[list[BuildState], Query(description="Only those in one of these states.")] = [],  # noqa: B006
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Any:
    found = flow.build_page(frozenset(state), None, cursors.place("builds", cursor), limit)
    return _page(request, answer, "builds", found)


def _page(request: Request, answer: Response, of: str, found: Page[Build]) -> Any:
    last = found.items[-1] if found.more else None
    after = cursors.written(of, (last.queued_at, last.key)) if last is not None else None
    items = [render.build(each) for each in found.items]
    return {"items": items, "next": cursors.next_page(request, answer, after)}


@router.get(
    "/builds/{key}",
    operation_id="getBuild",
    summary="One wheel, and how it came about",
    response_model=views.BuildView,
    responses=responses(404, 422),
)
def get_build(key: BuildKey, flow: FlowOf) -> Any:
    return render.build(flow.build_of(key))


@router.get(
    "/builds/{key}/log",
    operation_id="getBuildLog",
    summary="The log of the build of a wheel",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 416, 422), **LOG},
)
def get_build_log(key: BuildKey, flow: FlowOf, part: AskedRange, follow: Follow = False) -> Response:
    return live.followed(flow.follow_build(key)) if follow else sent_log(partial(flow.build_log, key), part)
