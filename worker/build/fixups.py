"""A commit with its fix-ups, as a commit of its own. Nothing is checked out, and the repository is only read.

Patches are text that nobody vouches for: git itself refuses those that lead out of the tree, through links too.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol

from worker.contract import Fixup, Source
from worker.errors import FixupFails, fault_of

#: Git's own name for a tree without a file, which is the parent of a first commit.
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "firstbad"), ("EMAIL", "firstbad@localhost"))
}
APPLY = ["apply", "--cached", "--whitespace=nowarn"]


class Missing(Exception):
    """The repository does not hold a commit that is needed; what git said."""


class Git(Protocol):
    """Runs git on the repository; None when it did it, else what it said. `into`: a file for what it writes."""

    def __call__(self, arguments: list[str], *, into: Path | None = None, date: str | None = None) -> str | None: ...


def environment(repository: Path, scratch: Path) -> dict[str, str]:
    """Variables by which git reads the repository, and writes into `scratch` only."""
    (scratch / "objects").mkdir(parents=True)
    quoted = str(repository / "objects").replace("\\", "\\\\").replace('"', '\\"')
    return {
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
        "GIT_INDEX_FILE": str(scratch / "index"),
        **WHO,
    }


def commit(git: Git, scratch: Path, source: Source) -> str:
    """The id of a commit of the same time, whose tree has the fix-ups in it. Errors: Missing, FixupFails."""
    _done(git(["read-tree", source.sha]))
    for fixup in source.fixups:
        patch = _patch(git, scratch, fixup)
        if patch.stat().st_size:
            _apply(git, scratch, fixup, patch)
    tree = _told(git, scratch, ["write-tree"])
    date = _told(git, scratch, ["log", "-1", "--format=%cd", "--date=raw", source.sha])
    return _told(git, scratch, ["commit-tree", tree, "-m", "fix-ups"], date)


def _patch(git: Git, scratch: Path, fixup: Fixup) -> Path:
    """A file with the change, against the first parent where it is that of a commit. Errors: Missing."""
    patch, sha = scratch / "patch", fixup.cherry_pick
    if sha is None:
        text = fixup.patch or ""
        try:
            patch.write_bytes(text.encode("utf-8", "surrogateescape") + (b"" if text.endswith("\n") else b"\n"))
        except OSError as error:
            raise fault_of(error, f"writing the patch {fixup.name}") from error
        return patch
    _done(git(["cat-file", "-e", f"{sha}^{{commit}}"]), f"{sha} is no commit of it")
    parent = f"{sha}^1" if git(["rev-parse", "--quiet", "--verify", f"{sha}^1"]) is None else EMPTY
    flags = ["-r", "-p", "--binary", "--full-index", "-M", "--no-color", "--no-ext-diff", "--no-textconv"]
    _done(git(["diff-tree", *flags, parent, sha], into=patch))
    return patch


def _apply(git: Git, scratch: Path, fixup: Fixup, patch: Path) -> None:
    """Puts the change into the index, unless it is there already. Errors: FixupFails."""
    index, before = scratch / "index", scratch / "index.before"
    shutil.copyfile(index, before)
    said = git([*APPLY, "--3way", "--", str(patch)])
    if said is None:
        return
    before.replace(index)
    if git([*APPLY, "--check", "--reverse", "--", str(patch)]) is None:
        return
    # What the three-way merge says is about conflicts in files that nobody can look at.
    raise FixupFails(fixup.name, git([*APPLY, "--check", "--", str(patch)]) or said)


def _told(git: Git, scratch: Path, arguments: list[str], date: str | None = None) -> str:
    _done(git(arguments, into=scratch / "told", date=date))
    return (scratch / "told").read_text(encoding="ascii").strip()


def _done(said: str | None, instead: str | None = None) -> None:
    if said is not None:
        raise Missing(instead or said)
