"""A request that is sent twice, by a double click or after a broken connection, and begins one bisection."""

from __future__ import annotations

import hashlib

from service.application.ports import Transaction
from service.domain.bisection import Bisection
from service.domain.errors import BadRequest, NotFound


def id_of(submitter: str, key: str) -> str:
    """Of the bisection that this key of a submitter begins, in the form of all others."""
    return "b" + hashlib.sha256(f"{submitter}\0{key}".encode("utf-8", "replace")).hexdigest()[:16]


def begun(tx: Transaction, wanted: Bisection) -> Bisection | None:
    """The bisection that the key began before; None when this is the first time. Errors: BadRequest.

    Whoever comes at the same time waits here, until the first one's transaction has ended.
    """
    tx.lock_native(f"submit {wanted.id}")
    try:
        found = tx.bisection(wanted.id)
    except NotFound:
        return None
    if found.request != wanted.request:
        raise BadRequest(
            f"the key has begun the bisection {found.id}, by another request",
            value=found.id,
            field="Idempotency-Key",
            advice="send a new key with each new request",
        )
    return found
