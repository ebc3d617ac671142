"""Bare mirrors of repositories: branches and tags, cloned once, fetched when asked, one process at a time each."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from service.adapters import git_errors, git_reach, repository_address
from service.adapters.addresses import Addresses
from service.adapters.git_command import NETWORK_LIMIT_S, GitCommand, MirrorFailed, Output
from service.application.ports import Asked
from service.domain.errors import RepositoryUnavailable

#: As long as a time.
_NEVER = "-" * len("2026-01-01T00:00:00.000000+00:00")
FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCHES_AND_TAGS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
#: What HEAD means in the source, a branch or not, at the last fetch. The mirror's own HEAD points here.
_HEAD = "refs/kept/HEAD"
_NO_HEAD = "couldn't find remote ref HEAD"
#: Pull requests' refs are left out: they are many times the branches, and a single one can be fetched by its SHA.
_CLONE = ("clone", "--quiet", "--bare", "--no-local", "--reject-shallow", "--no-recurse-submodules")
_FETCH = ("fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")


class Mirrors:
    """`folder` holds, for each repository, NAME.git and NAME.lock, and NAME.new-* while a clone is under way."""

    def __init__(
        self, folder: Path, git: GitCommand, *, allow_file: bool, addresses: Addresses, ssh: str = "ssh"
    ) -> None:
        self._folder = folder
        self._git = git
        self._allow_file = allow_file
        self._addresses = addresses
        self._ssh = ssh

    def path(self, repo: str) -> Path:
        """Where the mirror is, or would be. Errors: RepositoryUnavailable for an address that is not allowed."""
        repository_address.check(repo, allow_file=self._allow_file)
        git_reach.named(repo, self._addresses)
        return self._folder / f"{repository_address.mirror_name(repo)}.git"

    def existing(self, repo: str) -> Path:
        """The mirror; cloned when it is not there, as after the folder was emptied."""
        path = self.path(repo)
        if not path.is_dir():
            self.refresh(repo)
        return path

    def refresh(self, repo: str, have: Collection[str] = (), asked: Asked | None = None) -> None:
        """Errors: RepositoryUnavailable, MirrorFailed; after a failed clone nothing is left."""
        path = self.path(repo)
        if have and path.is_dir() and all(FULL_SHA.fullmatch(ref.lower()) for ref in have) and self.holds(path, have):
            return
        lock = path.with_suffix(".lock")
        known = _turns(lock)
        if path.is_dir() and _since(known, asked):
            return
        with _locked(lock) as held:
            turns = _turns(lock)
            if path.is_dir() and (turns.done > known.begun or _since(turns, asked)):
                return  # A fetch that began after this one was asked for has ended: what 50 wait for is done once.
            try:
                _write_turns(lock, replace(turns, begun=turns.begun + 1))
                self._update(repo, path, held)
            finally:
                if not path.is_dir():
                    lock.unlink()
            _write_turns(lock, Turns(turns.begun + 1, turns.begun + 1, asked.now if asked else None))

    def holds(self, path: Path, shas: Collection[str]) -> bool:
        listed = self._git("cat-file", "--batch-check", mirror=path, stdin="\n".join(shas).encode())
        return listed.status == 0 and "missing" not in listed.text

    def fetch_commit(self, repo: str, sha: str) -> bool:
        """Gets one object that no branch or tag reaches, and keeps it; False when the repository does not have it."""
        return self._keep(repo, f"{sha}:refs/kept/{sha}")

    def fetch_pull(self, repo: str, number: int) -> bool:
        """Gets the head of a pull request as it is now, as refs/kept/pull/NUMBER; False when there is none."""
        return self._keep(repo, f"+refs/pull/{number}/head:refs/kept/pull/{number}")

    def _keep(self, repo: str, refspec: str) -> bool:
        path = self.existing(repo)
        with _locked(path.with_suffix(".lock")) as held:
            output = self._fetch(path, held, repo, refspec)
        if output.status == 0:
            return True
        if git_errors.missing_object(output):
            return False
        raise self._error(repo, output)

    def _update(self, repo: str, path: Path, held: int) -> None:
        if path.is_dir():
            self._follow(repo, path, held)
        else:
            self._clone(repo, path, held)

    def _clone(self, repo: str, path: Path, held: int) -> None:
        way = git_reach.reach(repo, self._addresses, self._ssh)
        for left in self._folder.glob(f"{path.stem}.new-*"):
            shutil.rmtree(left)
        fresh = self._folder / f"{path.stem}.new-{secrets.token_hex(4)}"
        try:
            output = self._git(*_CLONE, "--", way.url, str(fresh), limit_s=NETWORK_LIMIT_S, held=(held,), reach=way)
            if output.status != 0:
                raise self._error(repo, output)
            self._settle(repo, fresh)
            fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _settle(self, repo: str, fresh: Path) -> None:
        self._git("update-ref", _HEAD, "HEAD", mirror=fresh)
        self._git("commit-graph", "write", "--reachable", mirror=fresh)
        # The address may hold a password; every fetch names it again.
        for command in (("config", "--remove-section", "remote.origin"), ("symbolic-ref", "HEAD", _HEAD)):
            if (output := self._git(*command, mirror=fresh)).status != 0:
                raise git_errors.error_of(repo, output, self._folder)

    def _follow(self, repo: str, path: Path, held: int) -> None:
        output = self._fetch(path, held, repo, *_BRANCHES_AND_TAGS, f"+HEAD:{_HEAD}", prune=True)
        if output.status != 0 and _NO_HEAD in output.errors:
            self._git("update-ref", "-d", _HEAD, mirror=path)
            output = self._fetch(path, held, repo, *_BRANCHES_AND_TAGS, prune=True)
        if output.status != 0 or git_errors.SHALLOW.search(output.errors):
            raise self._error(repo, output)

    def _fetch(self, path: Path, held: int, repo: str, *refspecs: str, prune: bool = False) -> Output:
        way = git_reach.reach(repo, self._addresses, self._ssh)
        options = ("--prune",) if prune else ()
        command = (*_FETCH, *options, "--", way.url, *refspecs)
        output = self._git(*command, mirror=path, limit_s=NETWORK_LIMIT_S, held=(held,), reach=way)
        if output.status != 0 and re.search(r"\.lock': File exists", output.errors):
            # Whoever writes here holds our lock, git's own children too: these are left from a crash.
            for stale in path.rglob("*.lock"):
                stale.unlink()
            output = self._git(*command, mirror=path, limit_s=NETWORK_LIMIT_S, held=(held,), reach=way)
        return output

    def _error(self, repo: str, output: Output) -> RepositoryUnavailable | MirrorFailed:
        if git_errors.MOVED.search(output.errors):
            return git_errors.moved(repo, git_reach.leads_to(repo, self._addresses))
        return git_errors.error_of(repo, output, self._folder)


def full(sha: str) -> str:
    if not FULL_SHA.fullmatch(sha):
        raise ValueError(f"a full SHA is wanted here, not {sha!r}")
    return sha


@dataclass(frozen=True)
class Turns:
    """How many updates of a mirror have begun, and the number of the last that ended well; `at`: not later than it
    began, None where that is not known."""

    begun: int = 0
    done: int = 0
    at: datetime | None = None


def _since(turns: Turns, asked: Asked | None) -> bool:
    """Whether the last update shows all that was there when this one was asked for."""
    return asked is not None and turns.at is not None and turns.at >= asked.at


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Alone among all processes, and threads too: such a lock belongs to one opening of the file."""
    try:
        descriptor = _open_locked(path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MirrorFailed(f"the mirrors' folder cannot be written: {error}") from error


def _open_locked(path: Path) -> int:
    """Again when the file that was locked has meanwhile been removed by whoever held it: others lock a new one."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _turns(lock: Path) -> Turns:
    try:
        begun, done, *at = lock.read_text().split()
        return Turns(int(begun), int(done), datetime.fromisoformat(at[0]) if at and at[0] != _NEVER else None)
    except (FileNotFoundError, ValueError):
        return Turns()


def _write_turns(lock: Path, turns: Turns) -> None:
    """In place, and of fixed length: the file is the lock, and is read without holding it."""
    with lock.open("r+") as file:
        at = turns.at.astimezone(UTC).isoformat(timespec="microseconds") if turns.at is not None else _NEVER
        file.write(f"{turns.begun:020d} {turns.done:020d} {at}\n")
