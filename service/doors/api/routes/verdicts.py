"""What a person does to a bisection that a search would not: a verdict by hand, one more run, another one like it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from service.doors import paths
from service.doors.api import action_bodies, etags, render, views, written
from service.doors.api.access import OwnerOf
from service.doors.api.action_bodies import OverrideBody, ReprobeBody
from service.doors.api.bodies import submission
from service.doors.api.document import parse
from service.doors.api.etags import IfMatch
from service.doors.api.openapi import body_of, partial_body
from service.doors.api.problems import responses
from service.doors.api.sent import BisectionId, Key, Sent
from service.doors.parameters import FlowOf

router = APIRouter()
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": {"Location": {"schema": {"type": "string"}}}}}


@router.post(
    "/bisections/{id}/overrides",
    operation_id="overrideVerdict",
    summary="Say of a commit that it is good, bad or cannot be tested",
    description="Counts in the place of what its probes show, whether it has any or not; who said it and why is kept. "
    "The search goes on from it, and an answer that does not stand any more is taken back. Said again, it changes "
    "nothing. What cannot be true beside what was said before is refused, with that.",
    response_model=views.BisectionView,
    responses=responses(403, 404, 409, 412, 413, 415, 422),
    openapi_extra=body_of(OverrideBody),
)
def override_verdict(id: BisectionId, caller: OwnerOf, flow: FlowOf, sent: Sent, known: IfMatch = None) -> Any:
    body, media_type = sent
    commit, verdict, why = action_bodies.override(parse(body, media_type))
    return render.bisection(flow.override(id, commit, verdict, why, caller, etags.expected(known)))


@router.post(
    "/bisections/{id}/probes",
    operation_id="reprobe",
    summary="Run a commit once more",
    description="Until that run is over there is no answer, and afterwards the one that it leaves. One that was asked "
    "for and is not over is answered again, and so is the one that the same `Idempotency-Key` began.",
    status_code=201,
    response_model=views.ProbeView,
    responses={**responses(403, 404, 409, 413, 415, 422), **_CREATED},
    openapi_extra=body_of(ReprobeBody),
)
def reprobe(id: BisectionId, caller: OwnerOf, answer: Response, flow: FlowOf, sent: Sent, key: Key = None) -> Any:
    body, media_type = sent
    commit, why = action_bodies.reprobe(parse(body, media_type))
    probe = flow.reprobe(id, commit, why, caller, key)
    answer.headers["Location"] = paths.probe(probe.id)
    return render.probe(probe)


@router.post(
    "/bisections/{id}/clone",
    operation_id="cloneBisection",
    summary="Begin another bisection like this one",
    description="Its request with the keys of the body in it, checked like a new one; null takes a key out. As it "
    "holds what the first one does, a password in an address too, it is for those who may change that one. Without a "
    "body it is the same again. Sent again with the same `Idempotency-Key`, it begins no second one.",
    status_code=201,
    response_model=views.BisectionView,
    responses={**responses(403, 404, 413, 415, 422), **_CREATED},
    openapi_extra=partial_body(),
)
def clone_bisection(
    id: BisectionId, caller: OwnerOf, answer: Response, flow: FlowOf, sent: Sent, key: Key = None
) -> Any:
    body, media_type = sent
    changes = parse(body, media_type) if body.strip() else {}
    known = {recipe.name: recipe for recipe in flow.recipes()}
    wanted = written.changed(written.document(flow.bisection(id).request, known), changes)
    made = flow.clone(id, submission(wanted), caller, key)
    answer.headers["Location"] = paths.bisection(made.id)
    return render.bisection(made)
