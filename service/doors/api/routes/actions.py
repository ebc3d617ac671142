"""What is done to a bisection that is under way."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.domain.access import Scope
from service.doors.api import etags, render, views
from service.doors.api.access import OwnerOf, needs
from service.doors.api.action_bodies import change
from service.doors.api.document import parse
from service.doors.api.etags import IfMatch
from service.doors.api.openapi import change_body
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId, Sent
from service.doors.parameters import FlowOf

router = APIRouter()


@router.patch(
    "/bisections/{id}",
    operation_id="changeBisection",
    summary="Give a bisection another priority, or another budget",
    description="Of priorities, all that is high goes before what is normal, and that before what is low; what runs "
    "goes on. Of a budget, each limit that is given takes the place of the one that was, and null takes it off; a "
    "bisection that ended since its budget was spent goes on. All of it is done, or nothing.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 412, 413, 415, 422),
    openapi_extra=change_body(),
)
def change_bisection(id: BisectionId, caller: OwnerOf, flow: FlowOf, sent: Sent, known: IfMatch = None) -> Any:
    body, media_type = sent
    wanted = change(parse(body, media_type))
    return render.bisection(flow.adjust(id, wanted, caller, etags.expected(known)))


@router.post(
    "/bisections/{id}/pause",
    operation_id="pauseBisection",
    summary="Begin nothing new for a bisection",
    description="What runs goes on to its end and is recorded, and the time does not count against its budget. "
    "Pausing it again changes nothing.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 412, 422),
)
def pause_bisection(id: BisectionId, caller: OwnerOf, flow: FlowOf, known: IfMatch = None) -> Any:
    return render.bisection(flow.pause(id, caller.name, etags.expected(known)))


@router.post(
    "/bisections/{id}/resume",
    operation_id="resumeBisection",
    summary="Let a paused bisection go on",
    description="One that is not paused stays as it is.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 412, 422),
)
def resume_bisection(id: BisectionId, caller: OwnerOf, flow: FlowOf, known: IfMatch = None) -> Any:
    return render.bisection(flow.resume(id, caller.name, etags.expected(known)))


@router.delete(
    "/bisections/{id}",
    operation_id="cancelBisection",
    summary="Cancel a bisection",
    description="What runs for it is stopped. Cancelling it again changes nothing.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 412, 422),
)
def cancel_bisection(id: BisectionId, caller: OwnerOf, flow: FlowOf, known: IfMatch = None) -> Any:
    return render.bisection(flow.cancel(id, caller.name, etags.expected(known)))


@router.post(
    "/bisections/{id}/judge",
    operation_id="judgeAgain",
    summary="Judge again by what is kept",
    description="Derives all verdicts anew from the facts of the runs, as after a change of the rules, and answers the "
    "probes whose verdict changed. Nothing is run for that; a bisection whose answer does not stand any more goes on.",
    response_model=views.ProbeList,
    responses=responses(403, 404, 422),
    dependencies=[needs(Scope.OPERATE)],
)
def judge_again(id: BisectionId, flow: FlowOf) -> Any:
    return {"items": [render.probe(each) for each in flow.judge_again(id)]}
