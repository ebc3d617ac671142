"""What a bisection measured."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from service.doors.api import pictures, render, views
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId
from service.doors.parameters import FlowOf

router = APIRouter()
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}, "description": "The picture."},
    304: {"description": "It is still as it was."},
}


@router.get(
    "/bisections/{id}/metric",
    operation_id="getMetric",
    summary="What was measured, over the commits",
    response_model=views.CurveView,
    responses=responses(404, 422),
)
def get_metric(id: BisectionId, flow: FlowOf) -> Any:
    return render.curve(flow.curve(id))


@router.get(
    "/bisections/{id}/metric.svg",
    operation_id="drawMetric",
    summary="That as a picture",
    description="Its `ETag` changes when the picture does; who asks with `If-None-Match` gets it only then.",
    response_class=Response,
    responses={**responses(404, 422), **PICTURE},
)
def draw_metric(id: BisectionId, request: Request, flow: FlowOf) -> Response:
    return pictures.picture(flow.curve(id), request.headers.get("if-none-match", ""))
