"""Who may do what, as the flow has it, kept in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from service.application.access import check_owner, hash_of, keep, new_token, works
from service.domain.access import Caller, Scope, Token, covers
from service.domain.bisection import Bisection
from service.domain.errors import NotFound, Unauthenticated


class FakeTokens:
    kept_tokens: tuple[Token, ...] = ()

    def bisection(self, id: str) -> Bisection:
        raise NotImplementedError

    def create_token(self, name: str, scope: Scope, by: str, days: float | None = None) -> tuple[Token, str]:
        made, text = new_token(name, scope, by, days, datetime.now(UTC))
        keep(self, made)  # type: ignore[arg-type]
        return made, text

    def save_token(self, token: Token) -> None:
        self.kept_tokens = (token, *self.kept_tokens)

    def tokens(self) -> tuple[Token, ...]:
        return self.kept_tokens

    def revoke_token(self, id: str) -> Token:
        found = next((token for token in self.kept_tokens if token.id == id), None)
        if found is None:
            raise NotFound(f"there is no token {id!r}", value=id)
        ended = replace(found, revoked_at=found.revoked_at or datetime.now(UTC))
        self.kept_tokens = tuple(ended if token.id == id else token for token in self.kept_tokens)
        return ended

    def recognize(self, text: str) -> Caller:
        for token in self.kept_tokens:
            if token.hash == hash_of(text) and works(token, datetime.now(UTC)):
                return Caller(f"token:{token.name}", token.scope, token.id)
        raise Unauthenticated("the token is not known here, or does not work any more", field="Authorization")

    def may_change(self, id: str, caller: Caller) -> None:
        submitter = self.bisection(id).submitter
        if not covers(caller.scope, Scope.OPERATE):
            check_owner(id, submitter, caller)
