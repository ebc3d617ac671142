"""Where it worked and where it is broken, as they were written: one ref each, several, or both in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from service.application import checks
from service.application.submission import Submission
from service.domain import refs
from service.domain.errors import BadRequest
from service.domain.recipe import Recipe
from service.domain.refs import Pair, Release, Until


@dataclass(frozen=True)
class Ends:
    """`site`: of the repository whose page a ref is the address of."""

    good: tuple[str, ...]
    bad: str
    site: str | None = None
    notes: tuple[str, ...] = ()


def ends(submission: Submission) -> Ends:
    """Both are the same where a range was written for one of them alone.

    Errors: BadRequest for one that is missing, and for a range where one commit is wanted.
    """
    good = tuple(checks.text(ref, "good") for ref in submission.good)
    bad = checks.text(submission.bad, "bad")
    written = tuple(dict.fromkeys((*good, bad)))
    site = _site(written)
    if len(written) == 1 and (pair := _pair(written[0])) is not None:
        note = f"{written[0]} is both ends: good {pair.good}, bad {pair.bad}."
        return Ends((pair.good,), pair.bad, site, (note,))
    if not good:
        raise BadRequest("good is missing", field="good", advice="name a commit, tag or branch that still worked")
    for field, ref in (*(("good", ref) for ref in good), ("bad", bad)):
        if _pair(ref) is not None:
            raise BadRequest(
                f"{ref[:80]!r} is a range, which is both ends, and another end is named beside it",
                value=ref,
                field=field,
                advice="leave the other end out, or write one commit here",
            )
    return Ends(good, bad, site)


def check_package(found: Ends, recipe: Recipe) -> None:
    """Errors: BadRequest for a version of another package than the recipe builds."""
    if recipe.package is None:
        return
    for field, ref in (*(("good", ref) for ref in found.good), ("bad", found.bad)):
        form = refs.read(ref).form
        named = form.package if isinstance(form, Release | Until) else None
        if named is not None and canonicalize_name(named) != canonicalize_name(recipe.package):
            raise BadRequest(
                f"{ref[:80]!r} is a version of {named}, and commits of {recipe.package} are looked at",
                value=ref,
                field=field,
                advice=f"give a version of {recipe.package}, a commit, or a day",
            )


def _pair(ref: str) -> Pair | None:
    form = refs.read(ref).form
    return form if isinstance(form, Pair) else None


def _site(written: Iterable[str]) -> str | None:
    sites = {reading.site for reading in map(refs.read, written) if reading.site is not None}
    return sites.pop() if len(sites) == 1 else None
