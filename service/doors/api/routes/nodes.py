"""The machines that run probes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.domain.access import Scope
from service.doors.api import render, views
from service.doors.api.access import needs
from service.doors.api.problems import responses
from service.doors.api.sent import NodeName
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/nodes",
    operation_id="listNodes",
    summary="The machines that run probes",
    response_model=views.NodeList,
    responses=responses(),
)
def list_nodes(flow: FlowOf) -> Any:
    return {"items": [render.node(each) for each in flow.nodes()]}


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
