"""Webhooks, for those who operate the service."""

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

router = APIRouter(dependencies=[needs(Scope.OPERATE)])
WebhookId = Annotated[str, Path(pattern=r"^[0-9a-z]{1,32}$", description="Id of a webhook.")]


class WebhookBody(Strict):
    """A webhook, as it is asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"url": "https://example.org/hooks/firstbad", "events": ["bisection.found"], "project": "vllm"}
            ]
        }
    )

    url: str = Field(min_length=1, max_length=2000, description="Where it is told, by https or http.")
    events: tuple[str, ...] = Field((), max_length=20, description="What it is told; everything without.")
    project: str | None = Field(None, max_length=200, description="Only of bisections of this recipe.")
    submitter: str | None = Field(None, max_length=300, description="Only of this one's bisections.")


@router.post(
    "/webhooks",
    operation_id="createWebhook",
    summary="Be told what happens",
    description="The secret that deliveries are signed with is in this answer alone. docs/webhooks.md tells what is "
    "sent, how a receiver checks it, and how often it is tried.",
    status_code=201,
    response_model=views.NewWebhookView,
    responses=responses(403, 413, 415, 422),
    openapi_extra=body_of(WebhookBody),
)
def create_webhook(caller: CallerOf, flow: FlowOf, sent: Sent) -> Any:
    asked = validated(WebhookBody, parse(*sent))
    made = flow.create_webhook(asked.url, caller.name, asked.events, asked.project, asked.submitter)
    return views.NewWebhookView.model_validate(made)


@router.get(
    "/webhooks",
    operation_id="listWebhooks",
    summary="The webhooks, oldest first, and how their last deliveries went",
    response_model=views.WebhookList,
    responses=responses(403),
)
def list_webhooks(flow: FlowOf) -> Any:
    return {"items": [views.WebhookView.model_validate(each) for each in flow.webhooks()]}


@router.get(
    "/webhooks/{id}",
    operation_id="getWebhook",
    summary="One webhook, and how its last delivery went",
    response_model=views.WebhookView,
    responses=responses(403, 404, 422),
)
def get_webhook(id: WebhookId, flow: FlowOf) -> Any:
    return views.WebhookView.model_validate(flow.webhook(id))


@router.delete(
    "/webhooks/{id}",
    operation_id="removeWebhook",
    summary="Be told no more",
    description="What waits to be delivered to it is dropped.",
    response_model=views.WebhookView,
    responses=responses(403, 404, 422),
)
def remove_webhook(id: WebhookId, flow: FlowOf) -> Any:
    return views.WebhookView.model_validate(flow.remove_webhook(id))


@router.post(
    "/webhooks/{id}/test",
    operation_id="testWebhook",
    summary="Have a ping sent to a webhook",
    description="The control worker sends it within seconds; how that went stands in the webhook then. One that was "
    "turned off is on again when it takes the ping.",
    status_code=202,
    response_model=views.WebhookView,
    responses=responses(403, 404, 422),
)
def test_webhook(id: WebhookId, flow: FlowOf) -> Any:
    return views.WebhookView.model_validate(flow.ping_webhook(id))
