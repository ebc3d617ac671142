"""Webhooks, in SQL: the part of the Transaction protocol in service/application/hooks.py."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from service.adapters.database.pending import Writer
from service.adapters.database.rows import OUTBOX, WEBHOOKS, from_row, to_row
from service.application.hooks import NOTICE
from service.domain.bisection import Message
from service.domain.errors import NotFound
from service.domain.webhook import Webhook


class SqlWebhooks:
    """A part of the transaction."""

    _connection: Writer

    def add_webhook(self, webhook: Webhook) -> None:
        self._connection.execute(insert(WEBHOOKS).values(to_row(webhook)))

    def webhook(self, id: str, *, lock: bool = False) -> Webhook:
        query = select(WEBHOOKS).where(WEBHOOKS.c.id == id)
        row = self._connection.execute(query.with_for_update() if lock else query).mappings().first()
        if row is None:
            raise NotFound(f"there is no webhook {id!r}", value=id, advice="GET /api/v1/webhooks lists them")
        return from_row(Webhook, row)

    def save_webhook(self, webhook: Webhook) -> None:
        self._connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.id == webhook.id).values(to_row(webhook)))

    def remove_webhook(self, id: str) -> None:
        self._connection.execute(delete(WEBHOOKS).where(WEBHOOKS.c.id == id))

    def webhooks(self) -> tuple[Webhook, ...]:
        rows = self._connection.execute(select(WEBHOOKS).order_by(WEBHOOKS.c.created_at, WEBHOOKS.c.id)).mappings()
        return tuple(from_row(Webhook, row) for row in rows)

    def notices(self, due: datetime, most: int) -> tuple[Message, ...]:
        query = select(OUTBOX.c.topic, OUTBOX.c.key, OUTBOX.c.payload).where(
            OUTBOX.c.delivered_at.is_(None), OUTBOX.c.topic == NOTICE, OUTBOX.c.posted_at <= due
        )
        query = query.order_by(OUTBOX.c.id).limit(most).with_for_update(skip_locked=True)
        return tuple(from_row(Message, row) for row in self._connection.execute(query).mappings())

    def postpone(self, keys: Collection[str], to: datetime) -> None:
        if keys:
            late = update(OUTBOX).where(OUTBOX.c.key.in_(sorted(keys)), OUTBOX.c.delivered_at.is_(None))
            self._connection.execute(late.values(posted_at=to))
