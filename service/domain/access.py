"""Who asks, and what that one may do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Scope(StrEnum):
    """Each holds those before it."""

    READ = "read"
    SUBMIT = "submit"
    OPERATE = "operate"
    ADMIN = "admin"


def covers(held: Scope | None, wanted: Scope) -> bool:
    """None holds nothing."""
    order = list(Scope)
    return held is not None and order.index(held) >= order.index(wanted)


@dataclass(frozen=True)
class Caller:
    """Who asks. `name` is kept as the submitter and with each change: unique, as in "github:ann", "token:nightly".
    `scope`: the largest, None where nothing is allowed. `token`: the id of the token that it came with."""

    name: str
    scope: Scope | None
    token: str | None = None


@dataclass(frozen=True)
class Token:
    """`name`: its owner's word for it, unique among those that hold. `prefix`: how its text begins, which may be
    shown. `hash`: SHA-256 of the text, in hex; the text itself is nowhere."""

    id: str
    name: str
    prefix: str
    hash: str
    scope: Scope
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None


@dataclass(frozen=True)
class Session:
    """Of a browser that signed in. `hash`: SHA-256 of the text in its cookie, in hex."""

    hash: str
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime
