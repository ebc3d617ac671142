"""Implements History: commits, their names and their order, read from local mirrors by single git commands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from service.adapters import repository_address
from service.adapters.git_changes import Changes
from service.adapters.git_command import GitCommand
from service.adapters.git_errors import checked
from service.adapters.git_mirror import FULL_SHA, Mirrors, full
from service.adapters.git_trees import Trees
from service.application.ports import Asked
from service.domain.bisection import Commit
from service.domain.errors import AmbiguousRef, BadRange, BadRequest, UnknownRef
from service.search.graph import Range
from service.search.priors import Change

RANGES_KEPT = 32
_SHORT_SHA = re.compile(r"[0-9a-fA-F]{4,63}")
#: Subjects and names hold no newline in git's own formats, and nothing holds a NUL.
_FORMAT = "--format=%H%n%P%n%an%n%ct%n%s"
_BLANK = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
#: What no ref's name may hold, and the suffixes that mean a search, a file, or several commits.
_NO_COMMIT = re.compile(r"^\^|[:*?\[\\]|@\{|\^[{@!-](?!commit\}|\})")
_KINDS = {"blob": "a file", "tree": "a folder", "tag": "a tag"}


class GitHistory:
    """Errors of every call besides those of the protocol: MirrorFailed, when the fault is on our side."""

    def __init__(self, mirrors_dir: Path, allow_file: bool, *, ssh: str = "ssh") -> None:
        mirrors_dir.mkdir(parents=True, exist_ok=True)
        folder = mirrors_dir.resolve()
        self._git = GitCommand(folder, repository_address.protocols(allow_file), ssh)
        self._mirrors = Mirrors(folder, self._git, allow_file=allow_file)
        self._trees = Trees(self._git)
        self._changes = Changes(self._git, folder)
        self._range = lru_cache(maxsize=RANGES_KEPT)(self._read_range)

    def check(self, repo: str) -> None:
        self._mirrors.path(repo)

    def refresh(self, repo: str, *, have: Collection[str] = (), asked: Asked | None = None) -> None:
        self._mirrors.refresh(repo, have, asked)

    def mirror(self, repo: str) -> str:
        """Never clones, so that it can be asked within a transaction."""
        return str(self._mirrors.path(repo))

    def resolve(self, repo: str, ref: str, *, field: str) -> Commit:
        _check_ref(ref, field)
        path = self._mirrors.existing(repo)
        sha = self._commit_of(path, ref)
        if sha is None:
            self._explain_other_object(repo, path, ref, field)
            if FULL_SHA.fullmatch(ref.lower()) and self._mirrors.fetch_commit(repo, ref.lower()):
                self._explain_other_object(repo, path, ref, field)
                sha = self._commit_of(path, ref)
        if sha is None:
            raise self._unknown(repo, path, ref, field)
        return self.commits(repo, [sha])[sha]

    def merge_base(self, repo: str, a: str, b: str) -> str | None:
        output = self._git("merge-base", full(a), full(b), mirror=self._mirrors.existing(repo))
        if output.status == 1:
            return None
        return checked(output).text.split("\n")[0]

    def range(self, repo: str, good: tuple[str, ...], bad: str, *, first_parent: bool = False) -> Range:
        """Errors: BadRange when `bad` is an ancestor of a good commit, so that nothing is left between them."""
        return self._range(repo, good, bad, first_parent)

    def commits(self, repo: str, shas: Collection[str]) -> dict[str, Commit]:
        """Those that are in the mirror, by SHA."""
        if not shas:
            return {}
        wanted = "".join(f"{full(sha)}\n" for sha in shas)
        options = ("--no-walk=unsorted", "--ignore-missing", "--stdin", "-z", "--no-show-signature", _FORMAT)
        output = self._git("log", *options, mirror=self._mirrors.existing(repo), stdin=wanted.encode())
        records = checked(output).out.decode("utf-8", "replace").split("\0")
        return {commit.sha: commit for commit in map(_commit, filter(None, records))}

    def trees(self, repo: str, shas: Collection[str], patterns: tuple[str, ...] = ()) -> dict[str, str]:
        """Errors: BadPattern."""
        return self._trees.ids(self._mirrors.existing(repo), shas, patterns)

    def files(self, repo: str, shas: Collection[str], path: str) -> dict[str, bytes | None]:
        """None also for what is no plain file, and for one of more than a mebibyte."""
        return self._trees.contents(self._mirrors.existing(repo), shas, path)

    def changes(self, repo: str, shas: Collection[str], words: Collection[str]) -> dict[str, Change]:
        return self._changes.of(self._mirrors.existing(repo), shas, words)

    def _read_range(self, repo: str, good: tuple[str, ...], bad: str, first_parent: bool) -> Range:
        options = ("--topo-order", "--reverse", "--parents", *(["--first-parent"] if first_parent else []), "--stdin")
        ends = "".join(f"{sha}\n" for sha in (full(bad), *(f"^{full(sha)}" for sha in good)))
        output = checked(self._git("rev-list", *options, mirror=self._mirrors.existing(repo), stdin=ends.encode()))
        lines = [line.split(" ") for line in output.out.decode("ascii").splitlines()]
        if not lines:
            raise BadRange(
                f"{bad[:12]} is an ancestor of, or the same as, a commit that is said to be good",
                value=bad,
                field="bad",
                advice="swap good and bad to find the commit that mended it, or name a newer bad commit",
            )
        return Range.of([line[0] for line in lines], {line[0]: line[1:] for line in lines}, first_parent)

    def _commit_of(self, path: Path, ref: str) -> str | None:
        output = self._parse(path, f"{ref}^{{commit}}")
        return output if output is not None and FULL_SHA.fullmatch(output) else None

    def _parse(self, path: Path, expression: str) -> str | None:
        output = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", expression, mirror=path)
        return output.text if output.status == 0 else None

    def _explain_other_object(self, repo: str, path: Path, ref: str, field: str) -> None:
        """Errors: AmbiguousRef; UnknownRef for a file or folder."""
        if _SHORT_SHA.fullmatch(ref) and len(found := self._begin_with(path, ref.lower())) > 1:
            raise self._ambiguous(repo, ref, found, field)
        if (sha := self._parse(path, f"{ref}^{{}}")) is None:
            return
        kind = self._git("cat-file", "-t", sha, mirror=path).text
        if kind != "commit":
            raise UnknownRef(
                f"{ref} names {_KINDS.get(kind, kind)} in {repository_address.shown(repo)}, not a commit",
                value=ref,
                field=field,
                advice="name a commit, a branch, or a tag of a commit",
            )

    def _begin_with(self, path: Path, prefix: str) -> list[Found]:
        listed = self._git("rev-parse", f"--disambiguate={prefix}", mirror=path).out
        checked = self._git("cat-file", "--batch-check=%(objectname) %(objecttype)", mirror=path, stdin=listed).text
        found = [Found(*line.split(" ")) for line in checked.splitlines()]
        return [one for one in found if one.kind in ("commit", "tag")]

    def _ambiguous(self, repo: str, ref: str, found: list[Found], field: str) -> AmbiguousRef:
        commits = self.commits(repo, [one.sha for one in found if one.kind == "commit"])
        lines = [
            f"{one.sha[:12]} {commits[one.sha].committed_at:%Y-%m-%d} {commits[one.sha].subject[:80]}"
            if one.sha in commits
            else f"{one.sha[:12]} (a tag)"
            for one in found[:10]
        ]
        return AmbiguousRef(
            f"{ref} is the beginning of {len(found)} in {repository_address.shown(repo)}: {'; '.join(lines)}",
            value=ref,
            field=field,
            advice="give more digits of the one that is meant",
        )

    def _unknown(self, repo: str, path: Path, ref: str, field: str) -> UnknownRef:
        listed = self._git("for-each-ref", "--format=%(refname:strip=2)", "refs/heads", "refs/tags", mirror=path)
        names = listed.text.splitlines()
        near = difflib.get_close_matches(re.split(r"[~^@]", ref)[0] or ref, names, n=3, cutoff=0.6)
        if near:
            advice = f"near to it: {', '.join(near)}"
        elif names:
            advice = "give a full SHA, or a branch or tag of that repository"
        else:
            advice = "that repository has neither branches nor tags"
        return UnknownRef(
            f"{ref!r} is no commit, branch or tag in {repository_address.shown(repo)}",
            value=ref,
            field=field,
            advice=advice,
        )


@dataclass(frozen=True)
class Found:
    sha: str
    kind: str


def _check_ref(ref: str, field: str) -> None:
    """Errors: BadRequest for what git would take for an option, a range, a search, a file, or more than one commit."""
    why = None
    if not ref or len(ref) > 500:
        why = "is empty" if not ref else "is longer than 500 characters"
    elif ref.startswith("-"):
        why = "begins with '-', which git would take for an option"
    elif _BLANK.search(ref):
        why = "holds blanks or control characters"
    elif ".." in ref:
        why = "is a range; one commit is wanted"
    elif _NO_COMMIT.search(ref):
        why = "is not the name of one commit"
    if why is not None:
        advice = "give a SHA, a branch or a tag, followed by ~N or ^N if need be"
        raise BadRequest(f"{ref[:80]!r} {why}", value=ref, field=field, advice=advice)


def _commit(record: str) -> Commit:
    sha, parents, author, seconds, subject = record.split("\n", 4)
    return Commit(sha, subject, author, _time(seconds), tuple(parents.split()))


def _time(seconds: str) -> datetime:
    """The epoch for a commit whose date cannot be read, or lies beyond the calendar."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
