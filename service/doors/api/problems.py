"""Every error as problem details (RFC 9457), and the same shape for the OpenAPI document."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from service.domain.errors import UserError
from service.doors.api.fields import nearest
from service.doors.api.views import FieldError, Problem

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger(__name__)

#: What a status means here, for the OpenAPI document.
MEANINGS: Mapping[int, str] = {
    401: "It needs a token, and this is none that works.",
    403: "The caller may not, by its scope or by a policy; or a page of another site asks for it.",
    404: "There is no such thing.",
    406: "There is no such form of it.",
    409: "It exists, but not in a state that allows this.",
    410: "It was there, and was removed since.",
    412: "It has changed since the `ETag` that `If-Match` names; nothing was done.",
    413: "The request is larger than is read here.",
    415: "The body has a content type that is not read here.",
    416: "It has none of the bytes that `Range` asks for; `Content-Range` says how many it has.",
    421: "The request is for another host.",
    422: "Something in the request cannot be used; `field` names it.",
    429: "Too many requests; `Retry-After` says when to ask again.",
    500: "firstbad failed; its log says why.",
    503: "The database is busy; nothing was kept. Try again in a moment.",
}
#: What any route may answer.
ANY = (401, 421, 429, 500, 503)
MOST_ERRORS = 20
#: How to write what must be a mapping, by its field.
_MAPPINGS: Mapping[str, str] = {
    "serve": "serve: {command: …}",
    "serve.ready": "ready: {http: /health}",
    "env": "env: {NAME: value}",
    "deps": "deps: {as_of: 2025-09-25}",
    "control": "control: {replace: {text: text}}",
    "control.replace": "replace: {text: text}",
    "metric": "metric: {pattern: …, better: higher}",
    "metric.csv": "csv: avg_ts, or csv: {column: avg_ts, where: {test: tg128}}",
    "metric.csv.where": "where: {column: value}",
    "measuring": "measuring: {runs: 50}",
    "resources": "resources: {gpus: 4}",
    "budget": "budget: {probes: 40, wall: 6h, gpu_hours: 20}",
}
#: What stands there may be a secret's value, where its name was meant.
_UNSHOWN: Mapping[str, str] = {
    "secrets": "write names alone, as secrets: [HF_TOKEN]; their values are set on the nodes"
}
_ORDER = ("type", "title", "status", "detail", "instance", "field", "value", "advice", "errors")
_SLUGS: Mapping[int, str] = {
    401: "unauthenticated",
    403: "forbidden",
    406: "not-acceptable",
    409: "conflict",
    410: "removed",
    413: "too-large",
    416: "no-such-range",
    421: "wrong-host",
    422: "bad-request",
    429: "too-many-requests",
    500: "internal-error",
    503: "database-busy",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: the problems that it may answer besides those of any route."""
    return {status: _documented(status) for status in sorted({*statuses, *ANY})}


def install(app: FastAPI) -> None:
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)


def response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """ASCII on the wire: half a surrogate pair that a user sent can still be quoted back."""
    members = problem.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({name: members[name] for name in _ORDER if name in members}, ensure_ascii=True)
    return Response(text, problem.status, dict(headers or {}), MEDIA_TYPE)


def busy(error: Exception, instance: str, after_s: int) -> Problem:
    return Problem(
        type="/problems/database-busy",
        title="The database is busy or away",
        status=503,
        detail=str(error)[:500],
        instance=instance,
        advice=f"send it again in {after_s} seconds",
    )


def of_user_error(error: UserError, instance: str) -> Problem:
    return Problem(
        type=f"/problems/{error.slug}",
        title=error.title,
        status=error.status,
        detail=error.detail,
        instance=instance,
        field=error.field,
        value=error.value,
        advice=error.advice,
    )


def of_validation(errors: Sequence[Mapping[str, Any]], instance: str) -> Problem:
    """The first error is the problem; all of them are listed when there are several."""
    listed = tuple(_field_error(error) for error in errors[:MOST_ERRORS])
    first = listed[0]
    return Problem(
        type="/problems/bad-request",
        title="The request cannot be used",
        status=422,
        detail=first.detail,
        instance=instance,
        field=first.field,
        value=first.value,
        advice=first.advice,
        errors=listed if len(listed) > 1 else (),
    )


def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    return response(of_user_error(error, request.url.path))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return response(of_validation(error.errors(), request.url.path))


def _http_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: no such route, no such method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {request.url.path}: {status.phrase.lower()}"
    problem = Problem(
        type=f"/problems/{_slug(status)}",
        title=status.phrase,
        status=status,
        detail=detail,
        instance=request.url.path,
        advice="the routes are listed in /api/v1/openapi.json",
    )
    return response(problem, error.headers)


def _unexpected(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return response(
        Problem(
            type="/problems/internal-error",
            title="firstbad itself failed",
            status=500,
            detail="the service met an unexpected error",
            instance=request.url.path,
            advice="the service's log (logs/api.log in its home) has the traceback",
        )
    )


def _field_error(error: Mapping[str, Any]) -> FieldError:
    context = error.get("ctx") or {}
    where = [str(part) for part in error["loc"] if part not in ("body", "query", "path", "header", "[key]")]
    if error["type"] == "unknown_key":
        return _unknown_key(where, str(context["key"]), list(context["known"]))
    if error["type"] == "key_elsewhere":
        field = ".".join([*where, str(context["key"])])
        return FieldError(field=field, detail=f"{field} {context['advice']}", advice=f"leave {field} out")
    field = ".".join(where)
    said = f"{str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"
    if where and where[0] in _UNSHOWN:
        return FieldError(field=field, detail=f"{field}: {said}", advice=_UNSHOWN[where[0]])
    if error["type"] == "missing":
        return FieldError(field=field, detail=f"{field} is missing", advice=f"add {field}:")
    if error["type"] == "string_pattern_mismatch":
        shown = _shown(error["input"])
        return FieldError(field=field, detail=f"{field}: {shown!r} cannot be one", value=shown, advice=_form(context))
    kind = ".".join(part for part in where if not part.isdigit())
    if error["type"] in ("model_type", "dict_type") and kind in _MAPPINGS:
        shown, advice = _shown(error["input"]), f"write it as {_MAPPINGS[kind]}"
        return FieldError(field=field, detail=f"{field}: {shown!r} is no mapping", value=shown, advice=advice)
    return FieldError(field=field, detail=f"{field}: {said}", value=_shown(error.get("input")))


def _unknown_key(where: list[str], key: str, known: list[str]) -> FieldError:
    meant = nearest(key, known)
    advice = f"did you mean {meant}?" if meant else f"known here are: {', '.join(known)}"
    field = ".".join([*where, key])
    return FieldError(
        field=field[:200], detail=f"{field[:200]!r} is no key of a request", value=key[:200], advice=advice
    )


def _form(context: Mapping[str, Any]) -> str:
    return f"it has the form {context['pattern']}"


def _shown(value: object) -> str:
    return value[:200] if isinstance(value, str) else repr(value)[:200]


def _documented(status: int) -> dict[str, Any]:
    example = {
        "type": f"/problems/{_slug(status)}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": MEANINGS[status],
        "instance": "/api/v1/bisections",
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": MEANINGS[status], "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


def _slug(status: int) -> str:
    return _SLUGS.get(status, HTTPStatus(status).phrase.lower().replace(" ", "-"))
