"""The machines that run probes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from service.domain.access import Scope
from service.doors.api import cursors, render, views
from service.doors.api.access import needs
from service.doors.api.cursors import LISTED, Cursor
from service.doors.api.problems import responses
from service.doors.api.sent import Many, NodeName
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/nodes",
    operation_id="listNodes",
    summary="The machines that run probes",
    response_model=views.NodeList,
    responses={**responses(422), **LISTED},
)
def list_nodes(request: Request, answer: Response, flow: FlowOf, limit: Many = 1000, cursor: Cursor = None) -> Any:
    found = flow.node_page(cursors.name("nodes", cursor), limit)
    after = cursors.written("nodes", found.items[-1].name) if found.more else None
    items = [render.node(each) for each in found.items]
    return {"items": items, "next": cursors.next_page(request, answer, after)}


@router.get(
    "/nodes/{name}",
    operation_id="getNode",
    summary="One machine",
    response_model=views.NodeView,
    responses=responses(404, 422),
)
def get_node(name: NodeName, flow: FlowOf) -> Any:
    return render.node(flow.node_of(name))


@router.post(
    "/nodes/{name}/return",
    dependencies=[needs(Scope.OPERATE)],
    operation_id="returnNode",
    summary="Give a node that was taken out probes again",
    description="A node is taken out when its hardware fails; `out` says why. One that is in stays so.",
    response_model=views.NodeView,
    responses=responses(403, 404, 422),
)
def return_node(name: NodeName, flow: FlowOf) -> Any:
    return render.node(flow.bring_back(name))
