"""From what a user wrote to commits: the ends looked up, put in order, and the range between them."""

from __future__ import annotations

from dataclasses import dataclass

from service.application import wording
from service.application.ports import History
from service.domain.bisection import Commit, Request
from service.domain.errors import BadRange
from service.search.graph import Range


@dataclass(frozen=True)
class Prepared:
    good_shas: tuple[str, ...]
    bad_sha: str
    range: Range
    notes: tuple[str, ...] = ()


def prepare(history: History, request: Request) -> Prepared:
    """Errors: every Refusal that the repository or the two ends can give."""
    repo = request.repo
    history.refresh(repo, have=(*request.good, request.bad))
    bad = history.resolve(repo, request.bad, field="bad")
    goods, notes = [], []
    for ref in request.good:
        good, note = _before(history, repo, history.resolve(repo, ref, field="good"), bad)
        goods.append(good)
        notes += [note] if note else []
    shas = tuple(dict.fromkeys(goods))
    range_ = history.range(repo, shas, bad.sha, first_parent=request.first_parent)
    return Prepared(shas, bad.sha, range_, tuple(notes))


def _before(history: History, repo: str, good: Commit, bad: Commit) -> tuple[str, str | None]:
    """The good end that is an ancestor of bad: itself, or their merge base and a note that says so."""
    if good.sha == bad.sha:
        raise BadRange(
            f"good and bad are the same commit, {wording.short(good.sha)} {good.subject}",
            value=good.sha,
            field="good",
            advice="name a good commit that is older than bad",
        )
    base = history.merge_base(repo, good.sha, bad.sha)
    if base is None:
        raise BadRange(
            f"good {wording.short(good.sha)} and bad {wording.short(bad.sha)} share no history",
            value=good.sha,
            field="good",
            advice="name a good commit that bad descends from",
        )
    if base == bad.sha:
        raise BadRange(
            f"good {wording.short(good.sha)} comes after bad {wording.short(bad.sha)}",
            value=good.sha,
            field="good",
            advice="swap the two if that is what was meant; good must be the older one",
        )
    return base, wording.merge_base_used(good.sha, bad.sha, base) if base != good.sha else None
