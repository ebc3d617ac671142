"""Work trees of our own, one for each place: small repositories that borrow the objects of the user's, so that nothing
a script does to its branches, tags, stash or configuration reaches the user's."""

from __future__ import annotations

import contextlib
import shutil
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from service.local.asked import Clean
from service.local.git import Git, GitFailed, paths

#: Locks that a killed git leaves; nobody else works in these repositories.
_LOCKS = ("index.lock", "HEAD.lock", "config.lock", "shallow.lock", "packed-refs.lock")
_COPIED = ("shallow", "info/sparse-checkout", "info/attributes", "info/exclude")
_OURS = """\
[core]
\tfsmonitor = false
\tuntrackedCache = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_FULL = ("No space left", "Disk quota exceeded", "Read-only file system")


class NoRoom(Exception):
    """The machine's doing, and no commit's."""


@dataclass(frozen=True)
class Source:
    """A repository to borrow from. `modules`: where the repositories of its submodules lie."""

    common: Path
    own_dir: Path
    object_format: str

    @classmethod
    def of(cls, git_dir: Path) -> Source:
        git = Git(git_dir, (f"--git-dir={git_dir}",))
        common = (git_dir / git.must("rev-parse", "--git-common-dir").text).resolve()
        return cls(common, git_dir, git.must("rev-parse", "--show-object-format").text)

    @cached_property
    def refs(self) -> bytes:
        """As a file of packed refs."""
        git = Git(self.common, (f"--git-dir={self.common}",))
        kinds = ("refs/heads", "refs/remotes", "refs/replace", "refs/tags")
        out = git.must("for-each-ref", "--format=%(objectname) %(refname)", *kinds).out
        symbolic = git.must("for-each-ref", "--format=%(symref) %(refname)", *kinds).out.splitlines()
        skipped = {line.split(b" ", 1)[1] for line in symbolic if not line.startswith(b" ")}
        lines = [line for line in out.splitlines() if line.split(b" ", 1)[1] not in skipped]
        return b"# pack-refs with: sorted \n" + b"".join(line + b"\n" for line in lines)

    def module(self, name: str) -> Source | None:
        """None for a submodule that the user has not initialised."""
        if ".." in Path(name).parts or name.startswith("/"):
            return None
        found = next((base / "modules" / name for base in (self.own_dir, self.common)
                      if (base / "modules" / name / "objects").is_dir()), None)  # fmt: skip
        return None if found is None else Source.of(found)


class WorkTree:
    def __init__(self, path: Path, source: Source) -> None:
        self.path, self.source = path, source
        self._dir = path / ".git"
        # Both are said: where the script took the repository away, git must not find another one above.
        self._git = Git(path.parent, (f"--git-dir={self._dir}", f"--work-tree={path}"))

    def checkout(self, sha: str, clean: Clean = Clean.KEEP) -> None:
        """Errors: GitFailed, when this commit cannot be checked out; NoRoom."""
        try:
            with contextlib.suppress(GitFailed, OSError):
                if clean is not Clean.FRESH and self._there():
                    self._move(sha, clean)
                    return
            # Whatever the script made of it: once more from the beginning.
            self.remove()
            self._make()
            self._move(sha, clean)
        except GitFailed as error:
            if any(word in str(error) for word in _FULL):
                raise NoRoom(str(error)) from None
            raise
        except OSError as error:
            raise NoRoom(f"{error.filename or self.path}: {error.strerror or error}") from None

    def remove(self) -> None:
        remove(self.path)

    def _there(self) -> bool:
        return (self._dir / "HEAD").is_file() and not self.path.is_symlink() and not self._dir.is_symlink()

    def _make(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        outside = Git(self.path.parent, env=("GIT_DEFAULT_REF_FORMAT=files",))
        outside.must("init", "--quiet", "--template=", f"--object-format={self.source.object_format}", str(self.path))
        config = self._dir / "config"
        config.write_text(self._config(config.read_text()), "utf-8", "surrogateescape")
        (self._dir / "objects" / "info").mkdir(parents=True, exist_ok=True)
        borrowed = _quoted(str(self.source.common / "objects"))
        (self._dir / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", "utf-8", "surrogateescape")
        (self._dir / "packed-refs").write_bytes(self.source.refs)
        for name in _COPIED:
            for base in (self.source.own_dir, self.source.common):
                if (base / name).is_file():
                    (self._dir / name).parent.mkdir(exist_ok=True)
                    shutil.copyfile(base / name, self._dir / name)
                    break

    def _config(self, own: str) -> str:
        """The user's own first, for filters, line ends, remotes and so on; what makes this one ours after it."""
        names = [self.source.common / "config", self.source.own_dir / "config.worktree"]
        included = "".join(f"[include]\n\tpath = {_in_config(str(path))}\n" for path in names if path.is_file())
        return included + own + _OURS

    def _move(self, sha: str, clean: Clean) -> None:
        for name in _LOCKS:
            (self._dir / name).unlink(missing_ok=True)
        before = self._git("rev-parse", "--verify", "--quiet", "HEAD")
        if clean in (Clean.UNTRACKED, Clean.IGNORED):
            self._git.must("clean", "-ffdq", *(["-x"] if clean is Clean.IGNORED else []))
        done = self._git("checkout", "--quiet", "--force", "--detach", sha)
        if done.status and before.status == 0:
            # What the commit has as a file may lie there as a folder.
            self._git.must("clean", "-ffdxq")
            done = self._git("checkout", "--quiet", "--force", "--detach", sha)
        if done.status:
            raise GitFailed(done.last_error)
        if before.status == 0:
            self._forget_bytecode(before.text, sha)
        self._submodules(sha, clean)

    def _forget_bytecode(self, before: str, after: str) -> None:
        """Python takes a file for unchanged that has the size and, to the second, the time of the one before."""
        changed = self._git.must(
            "diff", "--name-only", "--no-renames", "--no-relative", "-z", before, after, "--", "*.py"
        ).out
        for name in paths(changed):
            source = self.path / name
            for kept in (source.parent / "__pycache__").glob(f"{_literal(source.stem)}.*.pyc"):
                kept.unlink(missing_ok=True)

    def _submodules(self, sha: str, clean: Clean) -> None:
        if not (self.path / ".gitmodules").is_file():
            return
        listed = self._git("config", "--blob", f"{sha}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
        for item in paths(listed.out):
            key, _, where = item.partition("\n")
            source = self.source.module(key.removeprefix("submodule.").removesuffix(".path"))
            if source is None or not (self.path / where).resolve().is_relative_to(self.path.resolve()):
                continue
            entry = self._git("ls-tree", sha, "--", where).text.split()
            if len(entry) < 3 or entry[1] != "commit":
                continue
            WorkTree(self.path / where, source)._as_submodule(entry[2], clean)

    def _as_submodule(self, sha: str, clean: Clean) -> None:
        if self.path.is_symlink():
            raise GitFailed(f"{self.path.name}, a submodule, is a link")
        if not self._there():
            remove(self._dir)
            self._make()
        if self._git("cat-file", "-e", f"{sha}^{{commit}}").status:
            fetched = self._git("fetch", "--quiet", "--no-tags", "origin", sha)
            if fetched.status:
                raise GitFailed(f"the submodule {self.path.name} has no {sha[:12]}: {fetched.last_error}")
        self._move(sha, clean)


def remove(path: Path) -> None:
    """Also what was made unreadable or unwritable. Errors: OSError."""

    def again(function: Any, name: str, _: object) -> None:
        for each in (Path(name).parent, Path(name)):
            if not each.is_symlink() and each.exists():
                each.chmod(each.stat().st_mode | stat.S_IRWXU)
        if Path(name).is_dir() and not Path(name).is_symlink():
            shutil.rmtree(name)
        else:
            Path(name).unlink(missing_ok=True)

    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path, onerror=again)


def _quoted(path: str) -> str:
    """A line of git's alternates: as in C, where it has to be."""
    if not path.startswith('"') and "\n" not in path:
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _in_config(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def inside(tree: Path, folder: str) -> Path:
    """Where a command begins; made where this commit has no such folder."""
    place = tree / folder
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        place.mkdir(parents=True, exist_ok=True)
    return place if place.is_dir() and place.resolve().is_relative_to(tree.resolve()) else tree
