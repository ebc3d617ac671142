"""Commits of a bisection, as a person names one of them."""

from __future__ import annotations

import re

from service.domain.bisection import Bisection
from service.domain.errors import BadRequest, NotNow
from service.search.graph import Range

_SHA = re.compile("[0-9a-f]{4,64}")
MOST_WHY = 500


def named(bisection: Bisection, range_: Range, written: str) -> str:
    """The full SHA of one of the range or of its ends, by its beginning. Errors: BadRequest."""
    text = written.strip().lower()
    if not _SHA.fullmatch(text):
        raise BadRequest(
            f"{written[:80]!r} is no SHA",
            value=written,
            field="commit",
            advice="give the first four digits of it or more, as firstbad show prints them",
        )
    found = [sha for sha in (*bisection.good_shas, *range_.shas) if sha.startswith(text)]
    if len(found) == 1:
        return found[0]
    what = f"no commit of bisection {bisection.id} begins" if not found else f"{len(found)} of its commits begin"
    advice = "name one between the ends, or an end" if not found else "give more of its digits"
    raise BadRequest(f"{what} with {text}", value=written, field="commit", advice=advice)


def check_looked_up(bisection: Bisection) -> None:
    """Errors: NotNow."""
    if bisection.bad_sha is None:
        raise NotNow(
            f"the commits of bisection {bisection.id} are not looked up, it is {bisection.state}",
            value=bisection.id,
            advice=f"see firstbad show {bisection.id}",
        )


def reason(written: str) -> str:
    """Why somebody wants something, in one line. Errors: BadRequest."""
    told = " ".join(written.split())
    if not told or len(told) > MOST_WHY or not told.isprintable():
        raise BadRequest(
            f"why: {told[:80]!r} cannot be kept" if told else "why: it is not said",
            value=told,
            field="why",
            advice=f"say why in one line of at most {MOST_WHY} characters",
        )
    return told
