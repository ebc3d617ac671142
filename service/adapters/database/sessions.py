"""Sessions of browsers, in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from service.adapters.database.rows import SESSIONS, from_row, to_row
from service.domain.access import Session

if TYPE_CHECKING:
    from service.adapters.database.pending import Writer


class SqlSessions:
    _connection: Writer

    def save_session(self, session: Session) -> None:
        self._connection.execute(insert(SESSIONS).values(to_row(session)))

    def session(self, hash: str) -> Session | None:
        row = self._connection.execute(select(SESSIONS).where(SESSIONS.c.hash == hash)).mappings().one_or_none()
        return from_row(Session, row) if row is not None else None

    def remove_session(self, hash: str) -> None:
        self._connection.execute(delete(SESSIONS).where(SESSIONS.c.hash == hash))

    def forget_sessions(self, now: datetime) -> None:
        self._connection.execute(delete(SESSIONS).where(SESSIONS.c.expires_at <= now))
