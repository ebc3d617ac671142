"""Who a browser's user is by another service's word, and what that one may do here."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from service.domain.access import Scope
from service.domain.errors import UserError

#: The path of ours by which browsers come back.
CALLBACK = "/sign-in/callback"
#: After an organization: all its members.
EVERYBODY = "*"
#: GitHub's own limit for logins and organizations is 39; teams are longer.
_TO = re.compile(r"[a-z0-9][a-z0-9-]{0,38}(?:/(?:\*|[a-z0-9._-]{1,100}))?")


class SignInRefused(UserError):
    slug = "sign-in-refused"
    title = "The sign-in was refused"
    status = 403


class SignInUnavailable(UserError):
    """The other service did not answer as it should."""

    slug = "sign-in-unavailable"
    title = "The sign-in cannot be done now"
    status = 502


@dataclass(frozen=True)
class Grant:
    """`to`: in lower case, a login, "org/team", or "org/*" for all members of an organization."""

    to: str
    scope: Scope

    @property
    def of_group(self) -> bool:
        return "/" in self.to


@dataclass(frozen=True)
class Person:
    """`groups`: of those that grants name, the ones that the person is in."""

    login: str
    groups: frozenset[str] = frozenset()


def read(written: str) -> tuple[Grant, ...]:
    """Of "ann=admin, acme/*=read, acme/gpu-team=operate". Errors: ValueError."""
    parts = [part.strip() for part in written.split(",")]
    return tuple(_grant(part) for part in parts if part)


def _grant(part: str) -> Grant:
    to, sign, scope = (word.strip().lower() for word in part.rpartition("="))
    if not sign or not _TO.fullmatch(to):
        raise ValueError(
            f"{part!r} names nobody; write a login, org/team or org/*, and =read, =submit, =operate or =admin"
        )
    if scope not in list(Scope):
        raise ValueError(f"{part!r}: {scope!r} is no scope; use {', '.join(Scope)}")
    return Grant(to, Scope(scope))


def granted(person: Person, grants: Collection[Grant]) -> Scope | None:
    """The largest of all that are for this person; None when none is."""
    names = {person.login.lower(), *person.groups}
    scopes = {grant.scope for grant in grants if grant.to in names}
    return max(scopes, key=list(Scope).index, default=None)


def groups_of(grants: Sequence[Grant]) -> tuple[str, ...]:
    """Those that must be asked about."""
    return tuple(dict.fromkeys(grant.to for grant in grants if grant.of_group))
