"""The text of an issue, read for a request."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.domain.access import Scope
from service.doors.api import previews
from service.doors.api.access import needs
from service.doors.api.problems import responses
from service.doors.api.sent import Sent
from service.doors.api.views.previews import DraftView
from service.doors.parameters import FlowOf

router = APIRouter()


@router.post(
    "/bisections/parse",
    dependencies=[needs(Scope.SUBMIT)],
    operation_id="parseText",
    summary="Read the text of an issue for a request",
    description="Each value says from where in the text it comes and how certain it is; what is not plain is left out "
    "and asked for. The first 65,536 characters are read. Nothing is begun, and nothing looked up.",
    response_model=DraftView,
    responses=responses(403, 404, 413, 415, 422),
    openapi_extra=previews.text_body(),
)
def parse_text(flow: FlowOf, sent: Sent) -> Any:
    body, media_type = sent
    return previews.draft(flow.parse(*previews.text_of(body, media_type)))
