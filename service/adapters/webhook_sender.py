"""Sends to webhooks, signed by the Standard Webhooks scheme, to addresses that were checked and without redirects."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from service.adapters import checked_http
from service.adapters.addresses import Addresses, NotReached
from service.application.hooks import Sent
from service.domain.errors import BadRequest
from service.domain.webhook import Webhook

LIMIT_S = 10.0
_PREFIX = "whsec_"


class WebhookSender:
    """Implements Sender."""

    def __init__(self, addresses: Addresses, limit_s: float = LIMIT_S) -> None:
        # Which hosts repositories may be on says nothing of those that are told.
        self._addresses, self._limit_s = replace(addresses, hosts=()), limit_s

    def check(self, url: str) -> None:
        try:
            self._addresses.name(urlsplit(url).hostname or "")
        except NotReached as error:
            raise BadRequest(f"url cannot be reached: {error.what}", field="url", advice=error.advice) from None

    def send(self, webhook: Webhook, id: str, at: datetime, body: bytes) -> Sent:
        seconds = str(int(at.timestamp()))
        headers = {
            "content-type": "application/json",
            "user-agent": "firstbad",
            "webhook-id": id,
            "webhook-timestamp": seconds,
            "webhook-signature": signature(webhook.secret, id, seconds, body),
        }
        try:
            answer = checked_http.request(
                "POST", webhook.url, self._addresses, limit_s=self._limit_s, headers=headers, content=body
            )
        except checked_http.NoAnswer as error:
            return Sent(error=str(error))
        if 200 <= answer.status < 300:
            return Sent(answer.status)
        more = ", which is not followed" if 300 <= answer.status < 400 else ""
        return Sent(answer.status, f"it answered {answer.status}{more}")


def signature(secret: str, id: str, seconds: str, body: bytes) -> str:
    """As standardwebhooks.com has it."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.new(key, f"{id}.{seconds}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
