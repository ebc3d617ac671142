"""Implements History: commits, their names and their order, read from local mirrors by single git commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from service.adapters import repository_address
from service.adapters.addresses import Addresses
from service.adapters.git_changes import Changes
from service.adapters.git_command import GitCommand
from service.adapters.git_errors import checked
from service.adapters.git_mirror import Mirrors, full
from service.adapters.git_refs import Refs
from service.adapters.git_trees import Trees
from service.application.ports import Asked, Resolved
from service.domain.bisection import Commit
from service.domain.errors import BadRange
from service.search.graph import Range
from service.search.priors import Change

RANGES_KEPT = 32
#: Commits that are remembered, and the longest subject of one.
COMMITS_KEPT, SUBJECT_KEPT = 20_000, 500
#: Subjects and names hold no newline in git's own formats, and nothing holds a NUL.
_FORMAT = "--format=%H%n%P%n%an%n%ct%n%s"


class GitHistory:
    """Errors of every call besides those of the protocol: MirrorFailed, when the fault is on our side."""

    def __init__(
        self, mirrors_dir: Path, allow_file: bool, *, ssh: str = "ssh", addresses: Addresses | None = None
    ) -> None:
        mirrors_dir.mkdir(parents=True, exist_ok=True)
        folder = mirrors_dir.resolve()
        self._git = GitCommand(folder, repository_address.protocols(allow_file), ssh)
        self._mirrors = Mirrors(folder, self._git, allow_file=allow_file, addresses=addresses or Addresses(), ssh=ssh)
        self._refs = Refs(self._git, self._mirrors, self.commits)
        self._trees = Trees(self._git)
        self._changes = Changes(self._git, folder)
        self._known: dict[tuple[str, str], Commit] = {}
        self._range = lru_cache(maxsize=RANGES_KEPT)(self._read_range)

    def check(self, repo: str) -> None:
        self._mirrors.path(repo)

    def refresh(self, repo: str, *, have: Collection[str] = (), asked: Asked | None = None) -> None:
        self._mirrors.refresh(repo, have, asked)

    def mirror(self, repo: str) -> str:
        """Never clones, so that it can be asked within a transaction."""
        return str(self._mirrors.path(repo))

    def resolve(self, repo: str, ref: str, *, field: str, at: datetime | None = None) -> Resolved:
        found = self._refs.resolve(repo, ref, field=field, at=at)
        commit = self.commits(repo, [found.sha])[found.sha]
        return Resolved(commit.sha, commit.subject, commit.author, commit.committed_at, commit.parents, found.how)

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
        wanted = {full(sha) for sha in shas}
        found = {sha: commit for sha in wanted if (commit := self._known.get((repo, sha))) is not None}
        if left := wanted - found.keys():
            read = self._read_commits(repo, left)
            self._remember(repo, read)
            found |= read
        return found

    def trees(self, repo: str, shas: Collection[str], patterns: tuple[str, ...] = ()) -> dict[str, str]:
        """Errors: BadPattern."""
        return self._trees.ids(self._mirrors.existing(repo), shas, patterns)

    def files(self, repo: str, shas: Collection[str], path: str) -> dict[str, bytes | None]:
        """None also for what is no plain file, and for one of more than a mebibyte."""
        return self._trees.contents(self._mirrors.existing(repo), shas, path)

    def changes(self, repo: str, shas: Collection[str], words: Collection[str]) -> dict[str, Change]:
        return self._changes.of(self._mirrors.existing(repo), shas, words)

    def _read_commits(self, repo: str, shas: Collection[str]) -> dict[str, Commit]:
        wanted = "".join(f"{sha}\n" for sha in sorted(shas))
        options = ("--no-walk=unsorted", "--ignore-missing", "--stdin", "-z", "--no-show-signature", _FORMAT)
        output = self._git("log", *options, mirror=self._mirrors.existing(repo), stdin=wanted.encode())
        records = checked(output).out.decode("utf-8", "replace").split("\0")
        return {commit.sha: commit for commit in map(_commit, filter(None, records))}

    def _remember(self, repo: str, commits: Mapping[str, Commit]) -> None:
        """What a SHA names never changes, and a process of git for each report is a tenth of its cost."""
        if len(self._known) + len(commits) > COMMITS_KEPT:
            self._known.clear()
        short = {sha: commit for sha, commit in commits.items() if len(commit.subject) <= SUBJECT_KEPT}
        self._known.update({(repo, sha): commit for sha, commit in short.items()})

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


def _commit(record: str) -> Commit:
    sha, parents, author, seconds, subject = record.split("\n", 4)
    return Commit(sha, subject, author, _time(seconds), tuple(parents.split()))


def _time(seconds: str) -> datetime:
    """The epoch for a commit whose date cannot be read, or lies beyond the calendar."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
