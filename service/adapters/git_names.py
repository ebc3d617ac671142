"""Names of commits as git itself understands them: SHAs, branches, tags, and what is counted from them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.adapters import repository_address
from service.adapters.git_command import GitCommand
from service.adapters.git_mirror import FULL_SHA
from service.domain.bisection import Commit
from service.domain.errors import AmbiguousRef, BadRequest, UnknownRef
from service.domain.refs import LONGEST

_SHORT_SHA = re.compile(r"[0-9a-fA-F]{4,63}")
_BLANK = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
#: What no ref's name may hold, and the suffixes that mean a search, a file, or several commits.
_NO_COMMIT = re.compile(r"^\^|[:*?\[\\]|@\{|\^[{@!-](?!commit\}|\})")
_KINDS = {"blob": "a file", "tree": "a folder", "tag": "a tag"}
MOST_TOLD = 10


@dataclass(frozen=True)
class Asked:
    """A ref of a repository whose mirror is at `path`, as it was written in `field`."""

    repo: str
    path: Path
    ref: str
    field: str

    @property
    def shown(self) -> str:
        return repository_address.shown(self.repo)


class Names:
    """`commits`: those of a repository, by SHA."""

    def __init__(self, git: GitCommand, commits: Callable[[str, Collection[str]], dict[str, Commit]]) -> None:
        self._git = git
        self._commits = commits

    def commit(self, path: Path, name: str) -> str | None:
        output = self.parsed(path, f"{name}^{{commit}}")
        return output if output is not None and FULL_SHA.fullmatch(output) else None

    def parsed(self, path: Path, expression: str) -> str | None:
        output = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", expression, mirror=path)
        return output.text if output.status == 0 else None

    def explain_other_object(self, asked: Asked, name: str) -> None:
        """Errors: AmbiguousRef; UnknownRef for a file or folder."""
        if _SHORT_SHA.fullmatch(name) and len(found := self._begin_with(asked.path, name.lower())) > 1:
            raise self._beginning_of(asked, name, found)
        if (sha := self.parsed(asked.path, f"{name}^{{}}")) is None:
            return
        kind = self._git("cat-file", "-t", sha, mirror=asked.path).text
        if kind != "commit":
            raise UnknownRef(
                f"{name} names {_KINDS.get(kind, kind)} in {asked.shown}, not a commit",
                value=asked.ref,
                field=asked.field,
                advice="name a commit, a branch, or a tag of a commit",
            )

    def ambiguous(self, asked: Asked, what: str, candidates: Sequence[tuple[str, str]], advice: str) -> AmbiguousRef:
        """`candidates`: a SHA, and a name for it where there is one."""
        commits = self._commits(asked.repo, [sha for sha, _ in candidates[:MOST_TOLD]])
        told = [_line(sha, name, commits.get(sha)) for sha, name in candidates[:MOST_TOLD]]
        more = [f"and {len(candidates) - MOST_TOLD} more"] if len(candidates) > MOST_TOLD else []
        detail = f"{what} in {asked.shown}: {'; '.join((*told, *more))}"
        return AmbiguousRef(detail, value=asked.ref, field=asked.field, advice=advice)

    def unknown(self, asked: Asked, name: str) -> UnknownRef:
        listed = self._git("for-each-ref", "--format=%(refname:strip=2)", "refs/heads", "refs/tags", mirror=asked.path)
        names = listed.text.splitlines()
        near = difflib.get_close_matches(re.split(r"[~^@]", name)[0] or name, names, n=3, cutoff=0.6)
        if near:
            advice = f"near to it: {', '.join(near)}"
        elif names:
            advice = "give a full SHA, or a branch or tag of that repository"
        else:
            advice = "that repository has neither branches nor tags"
        return UnknownRef(
            f"{asked.ref!r} is no commit, branch or tag in {asked.shown}",
            value=asked.ref,
            field=asked.field,
            advice=advice,
        )

    def _begin_with(self, path: Path, prefix: str) -> list[str]:
        listed = self._git("rev-parse", f"--disambiguate={prefix}", mirror=path).out
        checked = self._git("cat-file", "--batch-check=%(objectname) %(objecttype)", mirror=path, stdin=listed).text
        found: Iterable[list[str]] = (line.split(" ") for line in checked.splitlines())
        return [sha for sha, kind in found if kind in ("commit", "tag")]

    def _beginning_of(self, asked: Asked, name: str, found: list[str]) -> AmbiguousRef:
        what = f"{name} is the beginning of {len(found)}"
        return self.ambiguous(asked, what, [(sha, "") for sha in found], "give more digits of the one that is meant")


def _line(sha: str, name: str, commit: Commit | None) -> str:
    called = f"{name} = {sha[:12]}" if name else sha[:12]
    return (
        f"{called} {commit.committed_at:%Y-%m-%d} {commit.subject[:80]}" if commit is not None else f"{called} (a tag)"
    )


def check(ref: str, field: str) -> None:
    """Errors: BadRequest for what git would take for an option, a range, a search, a file, or more than one commit."""
    if (why := _wrong(ref)) is not None:
        advice = "give a SHA, a branch or a tag, followed by ~N or ^N if need be, or what docs/refs.md lists"
        raise BadRequest(f"{ref[:80]!r} {why}", value=ref, field=field, advice=advice)


def may_be(ref: str) -> bool:
    """Whether git may be asked for such a name."""
    return _wrong(ref) is None


def _wrong(ref: str) -> str | None:
    if not ref or len(ref) > LONGEST:
        return "is empty" if not ref else f"is longer than {LONGEST} characters"
    if ref.startswith("-"):
        return "begins with '-', which git would take for an option"
    if _BLANK.search(ref):
        return "holds blanks or control characters"
    if ".." in ref:
        return "is a range; one commit is wanted"
    return "is not the name of one commit" if _NO_COMMIT.search(ref) else None
