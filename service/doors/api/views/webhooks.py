"""Webhooks."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from service.doors.api.views.base import View


class WebhookView(View):
    """`off`: why it is told nothing any more. `failing_since`: of the first failure since something was delivered;
    `last_error`: of the last delivery, at `tried_at`."""

    id: str = Field(examples=["5f0c1d2e3a4b"])
    url: str = Field(examples=["https://example.org/hooks/firstbad"])
    events: tuple[str, ...] = Field((), examples=[["bisection.found", "bisection.suspects"]])
    project: str | None = None
    submitter: str | None = None
    created_at: datetime
    created_by: str
    off: str = ""
    failing_since: datetime | None = None
    last_error: str = ""
    tried_at: datetime | None = None
    delivered_at: datetime | None = None


class NewWebhookView(WebhookView):
    """`secret`: what deliveries are signed with, which is shown this once."""

    secret: str


class WebhookList(View):
    items: tuple[WebhookView, ...]
