"""What access asks of the database: a part of the Transaction protocol."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from service.domain.access import Session, Token


class Identity(Protocol):
    def save_token(self, token: Token) -> None:
        """A new one."""

    def tokens(self) -> tuple[Token, ...]:
        """Newest first."""

    def token(self, hash: str) -> Token | None: ...
    def end_token(self, id: str, at: datetime) -> Token:
        """It works no longer."""

    def use_token(self, id: str, at: datetime) -> None: ...

    def save_session(self, session: Session) -> None:
        """A new one."""

    def session(self, hash: str) -> Session | None: ...
    def remove_session(self, hash: str) -> None:
        """Does nothing when it is not there."""

    def forget_sessions(self, now: datetime) -> None:
        """Those that are over."""
