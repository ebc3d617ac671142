"""The calls by which an operator has receivers told what happens: docs/webhooks.md."""

from __future__ import annotations

from collections.abc import Sequence

from firstbad.call import Call, part, posted
from service.doors.api.views import NewWebhookView, WebhookList, WebhookView


def create_webhook(
    url: str, events: Sequence[str] = (), project: str | None = None, submitter: str | None = None
) -> Call[NewWebhookView]:
    """The answer's `secret` is shown this once."""
    body = {"url": url, "events": list(events), "project": project, "submitter": submitter}
    return posted("/webhooks", NewWebhookView, body)


def webhooks() -> Call[WebhookList]:
    """Oldest first."""
    return Call("GET", "/webhooks", WebhookList.model_validate_json, again=True)


def webhook(id: str) -> Call[WebhookView]:
    return Call("GET", f"/webhooks/{part(id)}", WebhookView.model_validate_json, again=True)


def remove_webhook(id: str) -> Call[WebhookView]:
    return Call("DELETE", f"/webhooks/{part(id)}", WebhookView.model_validate_json)


def test_webhook(id: str) -> Call[WebhookView]:
    """A ping is sent within seconds; `webhook` tells then how that went."""
    return Call("POST", f"/webhooks/{part(id)}/test", WebhookView.model_validate_json)
