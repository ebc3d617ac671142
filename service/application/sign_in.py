"""Sessions of browsers: begun by who signed in elsewhere, known by their cookie, ended."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from service.application.access import hash_of
from service.domain.access import Caller, Session
from service.domain.sign_in import Grant, Person, SignInRefused, granted

if TYPE_CHECKING:
    from service.application.ports import Bisections, Clock

#: Hours that a session holds: after it, GitHub says again who is in which team.
HOURS = 12.0
_TEXT = re.compile(r"[A-Za-z0-9_-]{43}")


class Provider(Protocol):
    """The service that says who somebody is."""

    def address(self, state: str, verifier: str) -> str:
        """Where a browser is sent to. It comes back with `state` and a code."""

    def person(self, code: str, verifier: str) -> Person:
        """Errors: SignInRefused, SignInUnavailable."""


@dataclass(frozen=True)
class SignIn:
    """`site`: the URL under which browsers know this service, without a / at its end."""

    bisections: Bisections
    clock: Clock
    provider: Provider
    grants: Sequence[Grant]
    site: str

    @property
    def secure(self) -> bool:
        return self.site.startswith("https:")

    def begin(self, code: str, verifier: str) -> tuple[Session, str]:
        """The session and the text for its cookie, which is known nowhere else.

        Errors: SignInRefused, SignInUnavailable.
        """
        person = self.provider.person(code, verifier)
        scope = granted(person, self.grants)
        if scope is None:
            raise SignInRefused(
                f"{person.login} may not use this service",
                value=person.login,
                advice="ask its operator: FIRSTBAD_SIGN_IN names who may",
            )
        text, now = secrets.token_urlsafe(32), self.clock.now()
        session = Session(hash_of(text), f"github:{person.login}", scope, now, now + timedelta(hours=HOURS))
        with self.bisections.transaction() as tx:
            tx.forget_sessions(now)
            tx.save_session(session)
        return session, text

    def caller(self, text: str) -> Caller | None:
        """Whose session that is; None where it is none, or over."""
        if not _TEXT.fullmatch(text):
            return None
        with self.bisections.reading() as tx:
            found = tx.session(hash_of(text))
        if found is None or found.expires_at <= self.clock.now():
            return None
        return Caller(found.name, found.scope)

    def end(self, text: str) -> None:
        with self.bisections.transaction() as tx:
            tx.remove_session(hash_of(text))


def csrf_of(text: str) -> str:
    """What a page of ours sends with all that changes something, and a page of another site cannot know. It follows
    from the cookie's text, and the text does not from it."""
    return hmac.new(text.encode(), b"firstbad csrf", hashlib.sha256).hexdigest()


def is_csrf_of(text: str, sent: str) -> bool:
    return hmac.compare_digest(csrf_of(text).encode(), sent.encode())
