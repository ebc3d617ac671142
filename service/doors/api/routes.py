"""The routes under /api/v1: parse, call one function of the flow, render. The flow blocks, so they run in threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from service.application.queries import LogStream
from service.domain.errors import UserError
from service.domain.lifecycle import BisectionState
from service.doors import paths
from service.doors.api import live, pictures, render, views
from service.doors.api.bodies import change, submission
from service.doors.api.document import parse
from service.doors.api.openapi import change_body, request_body
from service.doors.api.problems import responses
from service.doors.parameters import BISECTION, FlowOf


class OtherSite(UserError):
    slug = "other-site"
    title = "The request comes from another site"
    status = 403


async def _from_here(request: Request) -> None:
    """A browser says by whose page it is made to ask, and a form of another site needs no body for some routes."""
    origin = request.headers.get("origin")
    if request.method == "GET" or origin is None or urlsplit(origin).netloc == request.headers.get("host"):
        return
    raise OtherSite(
        f"a page of {origin[:200]} asks for this",
        value=origin,
        field="Origin",
        advice="ask from a page of this service, or with a client that is no browser",
    )


router = APIRouter(prefix=paths.API, dependencies=[Depends(_from_here)])


async def _sent(request: Request) -> tuple[bytes, str]:
    """Body and media type. A form of another site can send only text/plain and form types, which `parse` refuses."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await request.body(), media_type


BisectionId = Annotated[str, Path(pattern=BISECTION, description="Id of a bisection.")]
ProbeId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}\.[0-9]{1,9}$", description="Id of a probe.")]
BuildKey = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,128}$", description="Key of a build.")]
NodeName = Annotated[str, Path(pattern=r"^[^\x00-\x1f/]{1,253}$", description="Name of a node.")]
ProbeNumber = Annotated[int, Path(ge=1, le=999_999_999)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Follow = Annotated[bool, Query(description="As it is written: what comes, for as long as it runs, or waits to run.")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, description="Chosen anew for each request."),
]
After = Annotated[int, Query(ge=0, le=2**62, description="Only those with a greater id.")]
LOG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log."}
}
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}, "description": "The picture."},
    304: {"description": "It is still as it was."},
}


def _who(request: Request) -> str:
    return f"api from {request.client.host}" if request.client else "api"


@router.post(
    "/bisections",
    operation_id="submit",
    summary="Start a bisection",
    description="Takes JSON or YAML. It answers at once; the refs are looked up afterwards, and what is wrong "
    "with them shows as state `refused` with a `problem`. Sent again with the same `Idempotency-Key`, the same request "
    "is answered with the bisection that it began.",
    status_code=201,
    response_model=views.BisectionView,
    responses={**responses(403, 413, 415, 422), 201: {"headers": {"Location": {"schema": {"type": "string"}}}}},
    openapi_extra=request_body(),
)
def submit(
    request: Request, answer: Response, flow: FlowOf, sent: Annotated[Any, Depends(_sent)], key: Key = None
) -> Any:
    body, media_type = sent
    made = flow.submit(submission(parse(body, media_type)), _who(request), key)
    answer.headers["Location"] = paths.bisection(made.id)
    return render.bisection(made)


@router.post(
    "/requests",
    operation_id="complete",
    summary="See what a request comes to, and begin nothing",
    description="Takes what starting a bisection takes and refuses the same. `notes` tells what was done to a pasted "
    "script.",
    response_model=views.RequestView,
    responses=responses(403, 413, 415, 422),
    openapi_extra=request_body(),
)
def complete(flow: FlowOf, sent: Annotated[Any, Depends(_sent)]) -> Any:
    body, media_type = sent
    return render.request(flow.draft(submission(parse(body, media_type))))


@router.get(
    "/bisections",
    operation_id="listBisections",
    summary="List bisections, newest first",
    response_model=views.BisectionList,
    responses=responses(422),
)
def list_bisections(
    flow: FlowOf,
    state: Annotated[list[BisectionState], Query(description="Only those in one of these states.")] = [],  # noqa: B006
    limit: Limit = 50,
) -> Any:
    return {"items": [render.bisection(each) for each in flow.bisections(frozenset(state), limit)]}


@router.get(
    "/bisections/{id}",
    operation_id="getBisection",
    summary="The report on a bisection",
    response_model=views.ReportView,
    responses=responses(404, 422),
)
def get_bisection(id: BisectionId, flow: FlowOf) -> Any:
    return render.report(flow.report(id))


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


@router.patch(
    "/bisections/{id}",
    operation_id="changeBisection",
    summary="Give a bisection another priority",
    description="All that is high goes before what is normal, and that before what is low; what runs goes on.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 413, 415, 422),
    openapi_extra=change_body(),
)
def change_bisection(id: BisectionId, request: Request, flow: FlowOf, sent: Annotated[Any, Depends(_sent)]) -> Any:
    body, media_type = sent
    return render.bisection(flow.prioritize(id, change(parse(body, media_type)), _who(request)))


@router.post(
    "/bisections/{id}/pause",
    operation_id="pauseBisection",
    summary="Begin nothing new for a bisection",
    description="What runs goes on to its end and is recorded, and the time does not count against its budget. "
    "Pausing it again changes nothing.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 422),
)
def pause_bisection(id: BisectionId, request: Request, flow: FlowOf) -> Any:
    return render.bisection(flow.pause(id, _who(request)))


@router.post(
    "/bisections/{id}/resume",
    operation_id="resumeBisection",
    summary="Let a paused bisection go on",
    description="One that is not paused stays as it is.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 422),
)
def resume_bisection(id: BisectionId, request: Request, flow: FlowOf) -> Any:
    return render.bisection(flow.resume(id, _who(request)))


@router.delete(
    "/bisections/{id}",
    operation_id="cancelBisection",
    summary="Cancel a bisection",
    description="What runs for it is stopped. Cancelling it again changes nothing.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 422),
)
def cancel_bisection(id: BisectionId, request: Request, flow: FlowOf) -> Any:
    return render.bisection(flow.cancel(id, _who(request)))


@router.post(
    "/bisections/{id}/judge",
    operation_id="judgeAgain",
    summary="Judge again by what is kept",
    description="Derives all verdicts anew from the facts of the runs, as after a change of the rules, and answers the "
    "probes whose verdict changed. Nothing is run for that; a bisection whose answer does not stand any more goes on.",
    response_model=views.ProbeList,
    responses=responses(403, 404, 422),
)
def judge_again(id: BisectionId, flow: FlowOf) -> Any:
    return {"items": [render.probe(each) for each in flow.judge_again(id)]}


@router.get(
    "/bisections/{id}/probes",
    operation_id="listProbes",
    summary="The probes of a bisection, by number",
    response_model=views.ProbeList,
    responses=responses(404, 422),
)
def list_probes(id: BisectionId, flow: FlowOf) -> Any:
    return {"items": [render.probe(each) for each in flow.probes(id)]}


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
    "/bisections/{id}/events",
    operation_id="listEvents",
    summary="What happened to a bisection, oldest first",
    response_model=views.EventList,
    responses=responses(404, 422),
)
def list_events(id: BisectionId, flow: FlowOf, after: After = 0) -> Any:
    items = [render.event(each) for each in flow.events(id, after)]
    return {"items": items, "last": items[-1].id if items else after}


@router.get(
    "/bisections/{id}/probes/{number}/log",
    operation_id="getLogByNumber",
    summary="The log of a probe, by its number",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 422), **LOG},
)
def get_log_by_number(id: BisectionId, number: ProbeNumber, flow: FlowOf, follow: Follow = False) -> Response:
    return get_log(f"{id}.{number}", flow, follow)


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
    responses={**responses(404, 409, 410, 422), **LOG},
)
def get_log(id: ProbeId, flow: FlowOf, follow: Follow = False) -> Response:
    return live.followed(flow.follow(id)) if follow else _log(flow.log(id))


@router.get(
    "/builds/{key}/log",
    operation_id="getBuildLog",
    summary="The log of the build of a wheel",
    response_class=StreamingResponse,
    responses={**responses(404, 409, 410, 422), **LOG},
)
def get_build_log(key: BuildKey, flow: FlowOf, follow: Follow = False) -> Response:
    return live.followed(flow.follow_build(key)) if follow else _log(flow.build_log(key))


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
    operation_id="returnNode",
    summary="Give a node that was taken out probes again",
    description="A node is taken out when its hardware fails; `out` says why. One that is in stays so.",
    response_model=views.NodeView,
    responses=responses(403, 404, 422),
)
def return_node(name: NodeName, flow: FlowOf) -> Any:
    return render.node(flow.bring_back(name))


def _log(found: LogStream) -> Response:
    """The first piece is read before anything is sent, so that a missing file is a 404 and not a broken answer."""
    pieces: Iterator[bytes] = iter(found.pieces)
    first = next(pieces, b"")
    return StreamingResponse(chain([first], live.to_the_end(pieces)), media_type=live.TEXT)
