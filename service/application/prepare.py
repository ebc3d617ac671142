"""From what a user wrote to commits: the ends looked up, put in order, and the range between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from service.application import wording
from service.application.ports import Asked, History, Resolved
from service.domain.bisection import Bisection, Commit, Request, ResolvedFixup, Setup
from service.domain.errors import BadPaths, BadRange
from service.domain.patterns import NO_FILES
from service.search.graph import Range


@dataclass(frozen=True)
class Prepared:
    good_shas: tuple[str, ...]
    bad_sha: str
    range: Range
    notes: tuple[str, ...] = ()
    setup: Setup = field(default_factory=Setup)


def prepare(history: History, request: Request, asked: Asked | None = None) -> Prepared:
    """Errors: every Refusal that the repository or the two ends can give."""
    repo = request.repo
    at = asked.at if asked is not None else None
    history.refresh(repo, have=(*request.good, request.bad), asked=asked)
    bad = history.resolve(repo, request.bad, field="bad", at=at)
    goods, notes = [], list(_taken("bad", request.bad, bad))
    for ref in request.good:
        resolved = history.resolve(repo, ref, field="good", at=at)
        good, note = _before(history, repo, resolved, bad)
        goods.append(good)
        notes += [*_taken("good", ref, resolved), *([note] if note else [])]
    shas = tuple(dict.fromkeys(goods))
    range_ = history.range(repo, shas, bad.sha, first_parent=request.first_parent)
    _check_paths(history, request, bad)
    return Prepared(shas, bad.sha, range_, tuple(notes), Setup(_as_of(request, bad), _fixups(history, request, at)))


def _taken(field: str, ref: str, found: Resolved) -> tuple[str, ...]:
    """What a ref was taken for, where it is not the commit's own name."""
    if not found.how:
        return ()
    commit = f"{wording.short(found.sha)} of {found.committed_at:%Y-%m-%d}, {found.subject[:100]!r}"
    return (f"{field} {ref} is taken for {found.how}: {commit}.",)


def _check_range(history: History, repo: str, ends: tuple[str, str], written: str, name: str) -> None:
    """Errors: BadRange for a fix-up that would apply to nothing."""
    try:
        history.range(repo, ends[:1], ends[1])
    except BadRange as error:
        raise BadRange(
            f"{name}: {written} holds no commit", value=written, field=name, advice="write the older end first"
        ) from error


def _check_paths(history: History, request: Request, bad: Commit) -> None:
    """Errors: BadPaths for patterns that choose nothing, which would make all commits look the same."""
    recipe = request.recipe
    for name, patterns in (("wheel_paths", recipe.wheel_paths), ("native_paths", recipe.native_paths)):
        if patterns and history.trees(request.repo, [bad.sha], patterns)[bad.sha] == NO_FILES:
            raise BadPaths(
                f"{name} choose no file of bad {wording.short(bad.sha)}: {', '.join(patterns)}",
                value=", ".join(patterns),
                field=name,
                advice="they are patterns as in .gitignore, from the root of the repository",
            )


def known(bisection: Bisection, prepared: Prepared) -> Bisection:
    """The bisection with what was found out about it."""
    size = len(prepared.range)
    notes = (*bisection.request.notes, *prepared.notes)
    found = replace(bisection, good_shas=prepared.good_shas, bad_sha=prepared.bad_sha, notes=notes)
    return replace(found, candidates=size, candidates_left=size, setup=prepared.setup)


def _as_of(request: Request, bad: Commit) -> str | None:
    """The end of the day for a date: what was published on it counts."""
    written = request.recipe.deps.as_of
    match written:
        case "today":
            return None
        case "commit":
            return written
        case "bad":
            return bad.committed_at.astimezone(UTC).isoformat()
        case _:
            return f"{written}T23:59:59+00:00"


def _fixups(history: History, request: Request, at: datetime | None) -> tuple[ResolvedFixup, ...]:
    """Errors: every Refusal that the ends of a fix-up's range, or the commit to pick, can give."""
    found = []
    for number, fixup in enumerate(request.recipe.fixups, start=1):
        field = f"fixups[{number}]"
        good, _, bad = fixup.range.partition("..")
        ends = [history.resolve(request.repo, ref, field=f"{field}.range", at=at).sha for ref in (good, bad)]
        picked, pick = fixup.cherry_pick, None
        if picked is not None:
            pick = history.resolve(request.repo, picked, field=f"{field}.cherry_pick", at=at).sha
        _check_range(history, request.repo, (ends[0], ends[1]), fixup.range, f"{field}.range")
        name = f"fix-up {number} (" + (f"cherry-pick {wording.short(pick)})" if pick else "patch)")
        found.append(ResolvedFixup(name, ends[0], ends[1], pick, fixup.patch))
    return tuple(found)


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
