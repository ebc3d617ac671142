"""Webhooks and what waits to be delivered to them: a part of the Transaction protocol, and the way out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.domain.bisection import Message
from service.domain.webhook import Webhook

#: Of messages to webhooks, which nothing else sends.
NOTICE = "notice"


class Hooks(Protocol):
    def add_webhook(self, webhook: Webhook) -> None: ...
    def webhook(self, id: str, *, lock: bool = False) -> Webhook:
        """Errors: NotFound."""

    def save_webhook(self, webhook: Webhook) -> None: ...
    def remove_webhook(self, id: str) -> None: ...
    def webhooks(self) -> tuple[Webhook, ...]:
        """Oldest first."""

    def notices(self, due: datetime, most: int) -> tuple[Message, ...]:
        """That are not delivered and whose time has come, oldest first; nobody else has them in another transaction."""

    def postpone(self, keys: Collection[str], to: datetime) -> None:
        """Messages that are not delivered."""


@dataclass(frozen=True)
class Sent:
    """`status`: of HTTP, None without an answer. `error`: empty when it was taken."""

    status: int | None = None
    error: str = ""


class Sender(Protocol):
    def check(self, url: str) -> None:
        """Whether it may be sent to at all, without a look at the network. Errors: BadRequest."""

    def send(self, webhook: Webhook, id: str, at: datetime, body: bytes) -> Sent:
        """Takes some seconds at most. `id`: the same each time that this is sent."""


class Unsent:
    """Where nobody is told."""

    def check(self, url: str) -> None: ...
    def send(self, webhook: Webhook, id: str, at: datetime, body: bytes) -> Sent:
        return Sent(error="nothing is sent from here")
