"""Tokens, in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from service.adapters.database.rows import TOKENS, from_row, to_row
from service.domain.access import Token

if TYPE_CHECKING:
    from service.adapters.database.pending import Writer


class SqlAccess:
    _connection: Writer

    def save_token(self, token: Token) -> None:
        self._connection.execute(insert(TOKENS).values(to_row(token)))

    def tokens(self) -> tuple[Token, ...]:
        rows = self._connection.execute(select(TOKENS).order_by(TOKENS.c.created_at.desc(), TOKENS.c.id)).mappings()
        return tuple(from_row(Token, row) for row in rows)

    def token(self, hash: str) -> Token | None:
        row = self._connection.execute(select(TOKENS).where(TOKENS.c.hash == hash)).mappings().one_or_none()
        return from_row(Token, row) if row is not None else None

    def end_token(self, id: str, at: datetime) -> Token:
        self._connection.execute(update(TOKENS).where(TOKENS.c.id == id).values(revoked_at=at))
        return from_row(Token, self._connection.execute(select(TOKENS).where(TOKENS.c.id == id)).mappings().one())

    def use_token(self, id: str, at: datetime) -> None:
        self._connection.execute(update(TOKENS).where(TOKENS.c.id == id).values(used_at=at))
