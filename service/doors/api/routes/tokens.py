"""Tokens, for those who administer the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from service.domain.access import Scope
from service.doors.api import views
from service.doors.api.access import CallerOf, needs
from service.doors.api.bodies import validated
from service.doors.api.document import parse
from service.doors.api.fields import Strict
from service.doors.api.openapi import body_of
from service.doors.api.problems import responses
from service.doors.api.sent import Sent
from service.doors.parameters import FlowOf

router = APIRouter(dependencies=[needs(Scope.ADMIN)])
TokenId = Annotated[str, Path(pattern=r"^[0-9a-z]{1,32}$", description="Id of a token.")]


class TokenBody(Strict):
    """A token, as it is asked for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "nightly", "scope": "submit", "days": 90}]})

    name: str = Field(min_length=1, max_length=100, description="Its owner's word for it.", examples=["nightly"])
    scope: Scope = Field(description="What it may do: each scope holds those before it.", examples=["submit"])
    days: float | None = Field(None, gt=0, le=3650, description="Until it expires; never without.", examples=[90])


@router.post(
    "/tokens",
    operation_id="createToken",
    summary="Make a token",
    description="Its text is in this answer alone: only its hash is kept. A name that a working token has is refused, "
    "so that a request that is sent again makes no second one.",
    status_code=201,
    response_model=views.NewTokenView,
    responses=responses(403, 413, 415, 422),
    openapi_extra=body_of(TokenBody),
)
def create_token(caller: CallerOf, flow: FlowOf, sent: Sent) -> Any:
    asked = validated(TokenBody, parse(*sent))
    made, text = flow.create_token(asked.name, asked.scope, caller.name, asked.days)
    shown = views.TokenView.model_validate(made).model_dump()
    return views.NewTokenView(token=text, **shown)


@router.get(
    "/tokens",
    operation_id="listTokens",
    summary="The tokens, newest first",
    response_model=views.TokenList,
    responses=responses(403),
)
def list_tokens(flow: FlowOf) -> Any:
    return {"items": [views.TokenView.model_validate(token) for token in flow.tokens()]}


@router.delete(
    "/tokens/{id}",
    operation_id="revokeToken",
    summary="Let a token work no longer",
    description="From then on; what it began goes on. Revoked again, it stays as it is.",
    response_model=views.TokenView,
    responses=responses(403, 404, 422),
)
def revoke_token(id: TokenId, flow: FlowOf) -> Any:
    return views.TokenView.model_validate(flow.revoke_token(id))
