"""Wheels and the logs of their builds."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from service.doors.api import live, render, views
from service.doors.api.logs import LOG, Follow, sent_log
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId, BuildKey
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/bisections/{id}/builds",
    operation_id="listBuilds",
    summary="The wheels of a bisection, and how each came about",
    response_model=views.BuildList,
    responses=responses(404, 422),
)
def list_builds(id: BisectionId, flow: FlowOf) -> Any:
    return {"items": [render.build(each) for each in flow.builds(id)]}


@router.get(
    "/builds/{key}/log",
    operation_id="getBuildLog",
    summary="The log of the build of a wheel",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 422), **LOG},
)
def get_build_log(key: BuildKey, flow: FlowOf, follow: Follow = False) -> Response:
    return live.followed(flow.follow_build(key)) if follow else sent_log(flow.build_log(key))
