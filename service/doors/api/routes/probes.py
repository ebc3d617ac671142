"""Probes and their logs."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from service.doors.api import cursors, live, render, views
from service.doors.api.cursors import LISTED, Cursor
from service.doors.api.logs import LOG, Follow, sent_log
from service.doors.api.problems import responses
from service.doors.api.ranges import AskedRange
from service.doors.api.sent import BisectionId, Many, ProbeId, ProbeNumber
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/bisections/{id}/probes",
    operation_id="listProbes",
    summary="The probes of a bisection, by number",
    response_model=views.ProbeList,
    responses={**responses(404, 422), **LISTED},
)
def list_probes(
    id: BisectionId, request: Request, answer: Response, flow: FlowOf, limit: Many = 1000, cursor: Cursor = None
) -> Any:
    found = flow.probe_page(id, cursors.number("probes", cursor), limit)
    after = cursors.written("probes", found.items[-1].number) if found.more else None
    items = [render.probe(each) for each in found.items]
    return {"items": items, "next": cursors.next_page(request, answer, after)}


@router.get(
    "/bisections/{id}/probes/{number}/log",
    operation_id="getLogByNumber",
    summary="The log of a probe, by its number",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 416, 422), **LOG},
)
def get_log_by_number(
    id: BisectionId, number: ProbeNumber, flow: FlowOf, part: AskedRange, follow: Follow = False
) -> Response:
    return get_log(f"{id}.{number}", flow, part, follow)


@router.get(
    "/probes/{id}",
    operation_id="getProbe",
    summary="One probe",
    response_model=views.ProbeView,
    responses=responses(404, 422),
)
def get_probe(id: ProbeId, flow: FlowOf) -> Any:
    return render.probe(flow.probe(id))


@router.get(
    "/probes/{id}/log",
    operation_id="getLog",
    summary="The log of a probe",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 416, 422), **LOG},
)
def get_log(id: ProbeId, flow: FlowOf, part: AskedRange, follow: Follow = False) -> Response:
    return live.followed(flow.follow(id)) if follow else sent_log(partial(flow.log, id), part)
