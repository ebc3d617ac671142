"""Webhooks as the flow has them, kept in memory; nobody is told anything."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from service.application.webhooks import new_webhook
from service.domain.errors import NotFound
from service.domain.webhook import Webhook


class FakeWebhooks:
    kept_webhooks: tuple[Webhook, ...] = ()

    def create_webhook(
        self,
        url: str,
        by: str,
        events: Iterable[str] = (),
        project: str | None = None,
        submitter: str | None = None,
    ) -> Webhook:
        made = new_webhook(url, by, events, project, submitter, datetime.now(UTC))
        self.kept_webhooks = (*self.kept_webhooks, made)
        return made

    def webhooks(self) -> tuple[Webhook, ...]:
        return self.kept_webhooks

    def webhook(self, id: str) -> Webhook:
        found = next((hook for hook in self.kept_webhooks if hook.id == id), None)
        if found is None:
            raise NotFound(f"there is no webhook {id!r}", value=id)
        return found

    def remove_webhook(self, id: str) -> Webhook:
        found = self.webhook(id)
        self.kept_webhooks = tuple(hook for hook in self.kept_webhooks if hook.id != id)
        return found

    def ping_webhook(self, id: str) -> Webhook:
        return self.webhook(id)
