"""A change of what was read before, and of nothing else."""

from __future__ import annotations

from service.application import queries
from service.application.ports import Transaction
from service.domain.bisection import Bisection
from service.domain.errors import PreconditionFailed

#: Instead of a version: whichever there is.
ANY = "*"


def locked(tx: Transaction, id: str, expected: str | None = None) -> Bisection:
    """Under its lock, so that what the version was compared with is what is changed. `expected`: the version that it
    must have, or several with commas between; None: no matter. Errors: NotFound; PreconditionFailed."""
    found = tx.bisection(id, lock=True)
    if expected is None:
        return found
    known = [one.strip() for one in expected.split(",")]
    version = queries.version(found, tx.last_event(id))
    if version not in known and expected != ANY:
        raise PreconditionFailed(
            f"bisection {id} is {version} now, and was to be changed as {expected[:100]}: nothing was changed",
            value=expected,
            field="If-Match",
            advice="get it again, look at what has changed, and send its new ETag, or none to change it as it is",
        )
    return found
