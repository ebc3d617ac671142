"""Who may do what: tokens, and whose a bisection is."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta

from service.application.identity import Identity
from service.application.work import Work
from service.domain.access import Caller, Scope, Token, covers
from service.domain.errors import BadRequest, Forbidden, NotFound, Unauthenticated

#: Seconds in which the use of a token is written down once.
USED_S = 60.0
MOST_DAYS = 3650.0
#: How the text of a token begins, for those who look for secrets where none should be.
BEGINS = "fb_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,99}")
_TEXT = re.compile(r"fb_[0-9a-z]{1,32}_[A-Za-z0-9_-]{43}")


class Access(Work):
    def create_token(self, name: str, scope: Scope, by: str, days: float | None = None) -> tuple[Token, str]:
        """The token and its text, which is known nowhere else. `days`: until it expires; None is never.

        Errors: BadRequest, also where another one that still works has the name.
        """
        made, text = new_token(name, scope, by, days, self.ports.clock.now())
        with self.ports.bisections.transaction() as tx:
            keep(tx, made)
        return made, text

    def tokens(self) -> tuple[Token, ...]:
        """Newest first, those that do not work any more too."""
        with self.ports.bisections.reading() as tx:
            return tx.tokens()

    def revoke_token(self, id: str) -> Token:
        """Revoked again, it stays as it is. Errors: NotFound."""
        with self.ports.bisections.transaction() as tx:
            found = next((token for token in tx.tokens() if token.id == id), None)
            if found is None:
                raise NotFound(f"there is no token {id!r}", value=id, advice="firstbad token list shows them")
            return found if found.revoked_at is not None else tx.end_token(id, self.ports.clock.now())

    def recognize(self, text: str) -> Caller:
        """Whose token that is. Errors: Unauthenticated, which does not tell one wrong token from another."""
        now = self.ports.clock.now()
        found = None
        if _TEXT.fullmatch(text):
            with self.ports.bisections.reading() as tx:
                found = tx.token(hash_of(text))
        if found is None or not works(found, now):
            raise Unauthenticated(
                "the token is not known here, or does not work any more",
                field="Authorization",
                advice="ask the operator for another one (firstbad token create)",
            )
        if found.used_at is None or (now - found.used_at).total_seconds() > USED_S:
            with self.ports.bisections.transaction() as tx:
                tx.use_token(found.id, now)
        return Caller(f"token:{found.name}", found.scope, found.id)

    def may_change(self, id: str, caller: Caller) -> None:
        """Errors: Forbidden, where it is not the caller's own and the caller no operator; NotFound."""
        if not covers(caller.scope, Scope.OPERATE):
            with self.ports.bisections.reading() as tx:
                check_owner(id, tx.bisection(id).submitter, caller)


def new_token(name: str, scope: Scope, by: str, days: float | None, now: datetime) -> tuple[Token, str]:
    """Errors: BadRequest."""
    _check(name, days)
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    text = f"{BEGINS}{id}_{secret}"
    ends = now + timedelta(days=days) if days is not None else None
    return Token(id, name, text[: len(BEGINS) + len(id) + 5], hash_of(text), scope, now, by, ends), text


def keep(tx: Identity, made: Token) -> None:
    """Errors: BadRequest."""
    if any(other.name == made.name and works(other, made.created_at) for other in tx.tokens()):
        raise BadRequest(
            f"there is a token {made.name!r} already",
            value=made.name,
            field="name",
            advice="choose another name, or revoke that one first",
        )
    tx.save_token(made)


def check_owner(id: str, submitter: str, caller: Caller) -> None:
    """Errors: Forbidden."""
    if submitter != caller.name or not covers(caller.scope, Scope.SUBMIT):
        raise Forbidden(
            f"bisection {id} is of {submitter}, and {caller.name} has the scope {caller.scope or 'none'}",
            value=id,
            advice=f"use a token with the scope {Scope.OPERATE}; with {Scope.SUBMIT} one changes one's own",
        )


def hash_of(text: str) -> str:
    """A token has 256 random bits: nothing slower than SHA-256 is needed to keep it from being guessed."""
    return hashlib.sha256(text.encode()).hexdigest()


def works(token: Token, now: datetime) -> bool:
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > now)


def _check(name: str, days: float | None) -> None:
    if not _NAME.fullmatch(name):
        raise BadRequest(
            f"{name!r} cannot be the name of a token",
            value=name,
            field="name",
            advice="use letters, digits and ._@:/- and begin with a letter or a digit; at most 100",
        )
    if days is not None and not 0 < days <= MOST_DAYS:
        raise BadRequest(
            f"a token cannot expire in {days:g} days",
            value=f"{days:g}",
            field="days",
            advice=f"write a number of days from 1 to {MOST_DAYS:g}, or leave it out",
        )
