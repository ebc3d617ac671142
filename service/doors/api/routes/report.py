"""A report to be passed on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from service.doors.api import reports
from service.doors.api.problems import responses
from service.doors.api.reports import FORMS, Format, page
from service.doors.api.reports.whole import WholeReportView
from service.doors.api.sent import BisectionId
from service.doors.parameters import FlowOf

router = APIRouter()
_FORMS: dict[str, Any] = {form.media_type: {"schema": {"type": "string"}} for form in FORMS.values()}
_SCHEMA = {"schema": {"$ref": f"#/components/schemas/{WholeReportView.__name__}"}}
_ANSWER = {"description": "The report.", "content": {**_FORMS, FORMS[Format.JSON].media_type: _SCHEMA}}


@router.get(
    "/bisections/{id}/report",
    operation_id="getReport",
    summary="The report on a bisection, as JSON, Markdown, HTML, git bisect log or JUnit XML",
    description="The form is `format`, else what `Accept` likes best. Markdown is made to be pasted into an issue; the "
    "log is taken by `git bisect replay`; in JUnit XML a regression that was found is one failing test.",
    response_class=Response,
    responses={**responses(404, 406, 422), 200: _ANSWER},
)
def get_report(
    id: BisectionId,
    flow: FlowOf,
    format: Annotated[Format | None, Query(description="Goes before `Accept`.")] = None,
    accept: Annotated[str | None, Header()] = None,
) -> Response:
    wanted = format if format is not None else reports.accepted(accept)
    form = FORMS[wanted]
    headers = {
        "Vary": "Accept",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": f'inline; filename="firstbad-{id}.{form.ending}"',
    }
    if wanted is Format.HTML:
        headers["Content-Security-Policy"] = f"{page.POLICY}; sandbox"
    text = form.write(flow, id).encode(errors="replace")
    return Response(text, headers=headers, media_type=f"{form.media_type}; charset=utf-8")
