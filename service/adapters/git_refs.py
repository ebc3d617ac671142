"""Which commit is meant by what people write: versions, days, pull requests and addresses, looked up in a mirror."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from service.adapters import git_names
from service.adapters.git_command import GitCommand
from service.adapters.git_errors import checked
from service.adapters.git_mirror import FULL_SHA, Mirrors
from service.adapters.git_names import Asked, Names
from service.domain import refs
from service.domain.bisection import Commit
from service.domain.errors import BadRequest, UnknownRef, UserError
from service.domain.refs import Ago, Named, Pair, Pull, Reading, Release, Sha, Until, Useless

_VERSIONED = re.compile(r"(?:(?P<prefix>.*?)[-_/@.]??)??[vV]?(?P<version>[0-9]+(?:\.[0-9]+)+.*)")
_SQUASHED = r"\(#{number}\)\s*$"
_MERGED = r"^Merge (?:pull request #{number} |PR #{number}\b)"
#: Names of commits that look like a day's, or a version's, are git's first.
_LISTED = "--format=%(refname:strip=2) %(objectname) %(*objectname)"


@dataclass(frozen=True)
class Found:
    """`how`: what it was taken for; empty where git knows the name itself."""

    sha: str
    how: str = ""


class Refs:
    def __init__(
        self,
        git: GitCommand,
        mirrors: Mirrors,
        commits: Callable[[str, Collection[str]], dict[str, Commit]],
    ) -> None:
        self._git = git
        self._mirrors = mirrors
        self._commits = commits
        self._names = Names(git, commits)

    def resolve(self, repo: str, ref: str, *, field: str, at: datetime | None) -> Found:
        """Errors: UnknownRef, AmbiguousRef, BadRequest."""
        reading = refs.read(ref)
        if isinstance(reading.form, Named) and reading.home is None:
            git_names.check(ref, field)
        asked = Asked(repo, self._mirrors.existing(repo), ref, field)
        # git's own words win: a tag may be called 2026-07-29, and a branch 1.2.3.
        if git_names.may_be(ref) and (sha := self._names.commit(asked.path, ref)) is not None:
            return Found(sha)
        return self._read(asked, reading, at)

    def _read(self, asked: Asked, reading: Reading, at: datetime | None) -> Found:
        match reading.form:
            case Named(name):
                _check_home(asked, reading)
                return self._named(asked, name)
            case Sha(digits, of):
                return Found(self._named(asked, digits).sha, f"the commit that {of} names")
            case Release():
                return self._released(asked, reading.form)
            case Until():
                return self._until(asked, reading.form, at)
            case Pull(number):
                _check_home(asked, reading)
                return self._pull(asked, number)
            case Pair():
                raise _refused(asked, "is a range; one commit is wanted", "write it as good alone, without bad")
            case Useless(why, advice):
                raise _refused(asked, why, advice)

    def _named(self, asked: Asked, name: str) -> Found:
        git_names.check(name, asked.field)
        sha = self._names.commit(asked.path, name)
        if sha is None:
            self._names.explain_other_object(asked, name)
            if FULL_SHA.fullmatch(name.lower()) and self._mirrors.fetch_commit(asked.repo, name.lower()):
                self._names.explain_other_object(asked, name)
                sha = self._names.commit(asked.path, name)
        if sha is None:
            raise self._names.unknown(asked, name)
        return Found(sha)

    def _released(self, asked: Asked, wanted: Release) -> Found:
        """By the tag of that version: the package's own before one that names none, before one that names another."""
        if git_names.may_be(asked.ref):
            self._names.explain_other_object(asked, asked.ref)
        ranked = self._tags(asked, wanted)
        best = min((rank for rank, _, _ in ranked), default=None)
        tags = [(sha, name) for rank, name, sha in ranked if rank == best]
        if not tags:
            raise self._names.unknown(asked, str(wanted.version))
        if len({sha for sha, _ in tags}) > 1:
            what = f"{asked.ref} may be {len(tags)} tags"
            raise self._names.ambiguous(asked, what, tags, "name the tag that is meant")
        sha = self._names.commit(asked.path, f"refs/tags/{tags[0][1]}")
        if sha is None:
            raise self._names.unknown(asked, tags[0][1])
        return Found(sha, f"the tag {tags[0][1]}")

    def _tags(self, asked: Asked, wanted: Release) -> list[tuple[int, str, str]]:
        """Rank, name, and the commit's SHA."""
        first = str(wanted.version.release[0])
        found = []
        for line in checked(self._git("for-each-ref", _LISTED, "refs/tags", mirror=asked.path)).text.splitlines():
            name, sha, *of = line.split(" ")
            match = _VERSIONED.fullmatch(name) if first in name else None
            if match is None or not _same(match["version"], wanted.version):
                continue
            rank = _rank(match["prefix"] or "", wanted.package, asked.repo)
            if rank is not None:
                found.append((rank, name, of[0] if of and of[0] else sha))
        return found

    def _until(self, asked: Asked, until: Until, at: datetime | None) -> Found:
        last = refs.deadline(until, at)
        if last is None:
            raise _refused(asked, "is no time that can be counted back to", "write a day like 2026-07-29")
        branch = until.branch or "HEAD"
        git_names.check(branch, asked.field)
        if self._names.commit(asked.path, branch) is None:
            raise self._names.unknown(asked, branch)
        # git takes 0 for no limit.
        options = (
            "-1",
            "--first-parent",
            f"--until=@{max(int(last.timestamp()), 1)} +0000",
            "--end-of-options",
            branch,
        )
        sha = checked(self._git("rev-list", *options, mirror=asked.path)).text
        if not sha:
            raise UnknownRef(
                f"{asked.shown} has no commit before {last:%Y-%m-%d %H:%M} UTC",
                value=asked.ref,
                field=asked.field,
                advice="name a later day",
            )
        return Found(sha, _by_time(until, last))

    def _pull(self, asked: Asked, number: int) -> Found:
        merges = self._merges(asked, number)
        if len(merges) > 1:
            what = f"pull request #{number} was merged {len(merges)} times"
            candidates = [(sha, "") for sha in merges]
            raise self._names.ambiguous(asked, what, candidates, "give the SHA of the one that is meant")
        if merges:
            return Found(merges[0], f"the commit that merged pull request #{number}")
        if not self._mirrors.fetch_pull(asked.repo, number):
            raise UnknownRef(
                f"no commit of {asked.shown} says that it merged pull request #{number}, and it has no such ref",
                value=asked.ref,
                field=asked.field,
                advice="give the SHA of its merge commit",
            )
        head = self._names.commit(asked.path, f"refs/kept/pull/{number}")
        if head is None:
            raise self._names.unknown(asked, f"#{number}")
        inside = self._git("merge-base", "--is-ancestor", head, "HEAD", mirror=asked.path).status == 0
        where = "which the default branch holds" if inside else "as the default branch has no commit that merged it"
        return Found(head, f"the head of pull request #{number}, {where}")

    def _merges(self, asked: Asked, number: int) -> list[str]:
        """Of the default branch's own line, newest first: by the subject, as a revert quotes another one's number."""
        told = re.compile(f"{_SQUASHED}|{_MERGED}".replace("{number}", str(number)))
        options = ("--first-parent", "-F", f"--grep=(#{number})", f"--grep=#{number} ", "-z", "--format=%H%n%s", "HEAD")
        if self._names.commit(asked.path, "HEAD") is None:
            return []
        records = checked(self._git("log", *options, mirror=asked.path)).out.decode("utf-8", "replace").split("\0")
        return [sha for sha, _, subject in (record.partition("\n") for record in records) if told.search(subject)]


def _check_home(asked: Asked, reading: Reading) -> None:
    """A number, a branch or a tag means something else in another repository. Errors: BadRequest."""
    if reading.home is None or _last(reading.home) == _last(asked.repo):
        return
    what = f"is of the repository {reading.home}, and {asked.shown} is looked at"
    raise _refused(asked, what, "give the SHA of the commit, or name that repository as repo:")


def _last(address: str) -> str:
    return re.split(r"[:/]", address.rstrip("/"))[-1].removesuffix(".git").lower()


def _same(written: str, version: Version) -> bool:
    try:
        return Version(written) == version
    except InvalidVersion:
        return False


def _rank(prefix: str, package: str | None, repo: str) -> int | None:
    """How well a tag's prefix fits, least best; None for one of another package than was asked for."""
    called = canonicalize_name(prefix.strip("-_/@."))
    if package is not None and called == canonicalize_name(package):
        return 0
    if called in refs.PLAIN or called == canonicalize_name(_last(repo)):
        return 1
    return 2 if package is None else None


def _by_time(until: Until, last: datetime) -> str:
    what = f"the last commit of {until.branch or 'the default branch'} before {last:%Y-%m-%d %H:%M:%S} UTC"
    day = not isinstance(until.when, Ago | datetime)
    return f"{what}; a build of that day may be of an earlier one" if day and until.package is not None else what


def _refused(asked: Asked, why: str, advice: str) -> UserError:
    return BadRequest(f"{asked.ref[:80]!r} {why}", value=asked.ref, field=asked.field, advice=advice)
