"""A commit's tree as a tar file, from the service's mirror or this node's own bare cache. Nothing of it is run here.

The archive is unpacked within the sandbox, where its links can lead nowhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from worker.build import fixups
from worker.build.reach import Reach
from worker.contract import Source
from worker.errors import NodeFault, fault_of
from worker.kept import Item, size_of

_SHA = re.compile(r"[0-9a-f]{40}")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.+)")
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*")
_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")
_SSH = "ssh -oBatchMode=yes"
TRANSPORTS = ("https", "ssh", "git")


class Stop(Protocol):
    """As much of a run's stop button as is needed here."""

    def check(self) -> None: ...
    def pause(self, seconds: float) -> None: ...
    def calling(self, call: Callable[[], None]) -> contextlib.AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Sources:
    """`folder`: the node's own caches. `env`: what git gets of the node's environment."""

    folder: Path
    env: Mapping[str, str]
    allow_file_repos: bool = False
    timeout_s: float = 900.0
    reach: Reach = field(default_factory=Reach)

    def archive(self, source: Source, into: Path, stop: Stop) -> None:
        """Writes the tree of the commit, with its fix-ups. Errors: NodeFault, FixupFails, Stopped."""
        check(source, allow_file_repos=self.allow_file_repos)
        mirror = Path(source.mirror) if source.mirror else None
        if mirror is not None and mirror.is_dir() and self._write(mirror, source, into, stop) is None:
            return
        with self._locked(source.repo, stop) as cache:
            self._write_from_cache(cache, source, into, stop)

    def _write_from_cache(self, cache: Path, source: Source, into: Path, stop: Stop) -> None:
        if self._write(cache, source, into, stop) is None:
            return
        way = self.reach.way(source.repo, self.env.get("GIT_SSH_COMMAND", _SSH))
        needed = [source.sha, *(fixup.cherry_pick for fixup in source.fixups if fixup.cherry_pick)]
        # Not every server hands out a commit by its name, so all heads, tags and pull requests are the second way.
        for wanted in (needed, ["+refs/*:refs/remotes/origin/*"]):
            options = ("--no-tags", "--no-recurse-submodules", "--quiet")
            command = ["--git-dir", str(cache), "fetch", *options, "--", way.url, *wanted]
            fetched = self._git(command, stop, env=way.variables())
            if fetched is None:
                why = self._write(cache, source, into, stop)
                if why is None:
                    return
                fetched = why
        what = f"commit {source.sha}" if len(needed) == 1 else f"commits {', '.join(needed)}"
        raise NodeFault(
            "source",
            f"{what} could not be brought here from {redacted(source.repo)}: {redacted(fetched or '')[-2000:]}",
            "Check that the node may read the repository, and that the commit is still in it.",
        )

    def _write(self, repository: Path, source: Source, into: Path, stop: Stop) -> str | None:
        """None when written, else what git said. Errors: FixupFails."""
        # A repository of ours stands in for the real one, so that neither its settings count nor its `export-ignore`:
        # the tree must be what a checkout would hold.
        env = {"GIT_DIR": str(self._stand_in(stop)), "GIT_OBJECT_DIRECTORY": str(repository / "objects")}
        if source.fixups:
            return self._write_fixed(repository, source, into, stop, env)
        return self._git(["archive", "--format=tar", source.sha], stop, into=into, env=env)

    def _write_fixed(
        self, repository: Path, source: Source, into: Path, stop: Stop, env: Mapping[str, str]
    ) -> str | None:
        with tempfile.TemporaryDirectory(dir=into.parent, prefix="fixed-") as folder:
            scratch = Path(folder)
            env = {**env, **fixups.environment(repository, scratch)}

            def git(arguments: list[str], *, into: Path | None = None, date: str | None = None) -> str | None:
                dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
                return self._git(arguments, stop, into=into, env={**env, **dates})

            try:
                fixed = fixups.commit(git, scratch, source)
            except fixups.Missing as missing:
                return str(missing)
            except OSError as error:
                raise fault_of(error, "making the fix-ups") from error
            return git(["archive", "--format=tar", fixed], into=into)

    def _stand_in(self, stop: Stop) -> Path:
        path = self.folder / "stand-in.git"
        if not path.exists():
            made = self.folder / f"stand-in-{uuid.uuid4().hex}"
            self._init(made, stop)
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text("* -export-ignore\n")
            try:
                made.rename(path)
            except OSError:  # another task was faster
                shutil.rmtree(made)
        return path

    def _init(self, path: Path, stop: Stop) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        said = self._git(["init", "--quiet", "--bare", "--template=", str(path)], stop)
        if said is not None:
            raise NodeFault("source", f"git could not make {path}: {said}", "Is git installed, and work_dir writable?")

    @contextlib.contextmanager
    def _locked(self, repo: str, stop: Stop) -> Iterator[Path]:
        """The node's own bare cache of this repository, held by one task at a time."""
        path = self.folder / f"{hashlib.sha256(repo.encode()).hexdigest()[:24]}.git"
        self.folder.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    stop.pause(0.1)
            if not (path / "HEAD").exists():
                self._init(path, stop)
            os.utime(lock.fileno())
            yield path

    def items(self, throw: Callable[[Path], None]) -> Iterator[Item]:
        """The node's own caches. `throw`: takes a folder away."""
        for path in self.folder.glob("*.git"):
            lock = path.with_suffix(".lock")
            # One that is only the stand-in has none.
            with contextlib.suppress(OSError):
                used_at = lock.stat().st_mtime
                yield Item(str(path), used_at, partial(size_of, path), partial(_removed, path, lock, throw))

    def _git(
        self, arguments: list[str], stop: Stop, *, into: Path | None = None, env: Mapping[str, str] | None = None
    ) -> str | None:
        """None when git did it, else what it said. Errors: NodeFault when it takes too long, Stopped."""
        protocols = ":".join((*TRANSPORTS, "file") if self.allow_file_repos else TRANSPORTS)
        command = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *arguments]
        set_here = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "SSH_ASKPASS": "true",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ALLOW_PROTOCOL": protocols,
            "LC_ALL": "C",
        }
        environment = {"GIT_SSH_COMMAND": _SSH, **self.env, **set_here, **(env or {})}
        try:
            with contextlib.ExitStack() as stack:
                out = stack.enter_context(into.open("wb")) if into else subprocess.DEVNULL
                process = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
                stack.enter_context(stop.calling(process.kill))
                said = _said(process, self.timeout_s)
        except OSError as error:
            raise fault_of(error, "running git") from error
        stop.check()
        if process.returncode and "No space left on device" in said:
            raise NodeFault(
                "disk-full", f"no space left on the node while git worked: {said[-2000:]}", "Free space in work_dir."
            )
        return (said or f"git ended with {process.returncode}") if process.returncode else None


def _removed(path: Path, lock: Path, throw: Callable[[Path], None]) -> bool:
    """The lock stays: somebody may wait for it already."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        throw(path)
    return True


def _said(process: subprocess.Popen[bytes], timeout_s: float) -> str:
    try:
        _, said = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise NodeFault(
            "source", f"git took longer than {timeout_s:.0f} s", "Look at the network of the node."
        ) from None
    return said.decode("utf-8", "replace").strip()[-20_000:]


def check(source: Source, *, allow_file_repos: bool) -> None:
    """Errors: NodeFault for what must not reach git."""
    if not _SHA.fullmatch(source.sha):
        raise NodeFault("order", f"{source.sha!r} is no full SHA", "A full SHA has 40 hexadecimal digits.")
    for fixup in source.fixups:
        if (fixup.cherry_pick is None) == (fixup.patch is None):
            raise NodeFault("order", f"{fixup.name} is neither a commit nor a patch", "")
        if fixup.cherry_pick is not None and not _SHA.fullmatch(fixup.cherry_pick):
            message = f"{fixup.name} picks {fixup.cherry_pick!r}, which is no full SHA"
            raise NodeFault("order", message, "A full SHA has 40 hexadecimal digits.")
    repo = source.repo
    if not repo or repo.startswith("-") or any(ord(sign) < 32 for sign in repo):
        raise NodeFault("order", f"{repo!r} is no repository", "Give a URL.")
    if re.match(r"[A-Za-z0-9_+.-]*::", repo):
        raise _refused(repo, allow_file_repos)
    with_scheme = _SCHEME.fullmatch(repo)
    scheme = with_scheme["scheme"].lower() if with_scheme else "ssh" if _SCP.fullmatch(repo) else "file"
    if scheme not in TRANSPORTS and not (scheme == "file" and allow_file_repos):
        raise _refused(repo, allow_file_repos)
    if source.mirror is not None and not Path(source.mirror).is_absolute():
        raise NodeFault("order", f"the mirror {source.mirror!r} is no absolute path", "")


def _refused(repo: str, allow_file_repos: bool) -> NodeFault:
    allowed = ", ".join((*TRANSPORTS, "file") if allow_file_repos else TRANSPORTS)
    advice = "" if allow_file_repos else " Folders need FIRSTBAD_ALLOW_FILE_REPOS=true on the node."
    return NodeFault(
        "order", f"{redacted(repo)!r} is refused: only {allowed} may be used.", f"Give another URL.{advice}"
    )


def redacted(text: str) -> str:
    """Without names and passwords in URLs."""
    return _CREDENTIALS.sub(r"\1", text)
