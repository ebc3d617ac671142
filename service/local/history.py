"""What the user's repository holds: where it lies, what its names mean, and the commits between two of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import BadRange, BadRequest, UnknownRef
from service.local.git import Git, NoGit
from service.search import Range

_FORMAT = "--format=%H%x00%an%x00%cs%x00%s"


@dataclass(frozen=True)
class Checkout:
    """`top`: of the user's work tree; in a bare repository, where we stand. `folder`: where we stand, from there on.
    `own_dir`: of a linked work tree its own part of the repository, elsewhere the same as `common`."""

    top: Path
    folder: str
    bare: bool
    common: Path
    own_dir: Path
    git: Git

    @classmethod
    def at(cls, cwd: Path) -> Checkout:
        """Errors: BadRequest outside a repository."""
        git = Git(cwd, inherit=True)
        own = _located(git, "--absolute-git-dir")
        common = (cwd / _located(git, "--git-common-dir")).resolve()
        bare = git.must("rev-parse", "--is-inside-work-tree").text != "true"
        top = cwd if bare else Path(_located(git, "--show-toplevel"))
        folder = "" if bare else _located(git, "--show-prefix").rstrip("/")
        return cls(top, folder, bare, common, Path(own), Git(top, (f"--git-dir={own}",)))

    @property
    def object_format(self) -> str:
        return self.git.must("rev-parse", "--show-object-format").text

    def commit(self, ref: str, field: str) -> str:
        """Errors: UnknownRef, BadRequest."""
        if not ref or ref.startswith("-") or ".." in ref or "\n" in ref:
            raise BadRequest(f"{field} {ref!r} is not the name of one commit", value=ref, field=field)
        found = self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.status == 0:
            return found.text
        raise UnknownRef(
            f"{field}: {_why_unknown(self, ref)}", value=ref, field=field, advice=_advice_on_unknown(self, ref)
        )

    def bases(self, olds: Sequence[str], new: str) -> tuple[str, ...]:
        """Where the histories of ends that are no ancestors of the newer one part from its own."""
        found: dict[str, None] = {}
        for old in olds:
            shas = self.git("merge-base", "--all", old, new).text.split()
            if not shas:
                self._unrelated(old, new)
            if old not in shas:
                found |= dict.fromkeys(shas)
        return tuple(sha for sha in found if sha not in olds)

    def _unrelated(self, old: str, new: str) -> None:
        advice = self._unshallow() if self.shallow else "name two commits of one history"
        raise BadRange(f"{old[:12]} and {new[:12]} have no history in common", value=old, field="good", advice=advice)

    def range(self, olds: Sequence[str], new: str, *, first_parent: bool) -> Range:
        """Errors: BadRange where nothing is between them, or where a shallow clone has cut it off."""
        options = ["--topo-order", "--reverse", "--parents", *(["--first-parent"] if first_parent else [])]
        lines = self.git.must("rev-list", *options, new, *(f"^{old}" for old in olds)).text
        rows = [line.split() for line in lines.splitlines()]
        if not rows:
            raise BadRange(
                f"{new[:12]} is the same as, or an ancestor of, {olds[0][:12]}: nothing is between them",
                value=new,
                field="bad",
                advice="swap them if the older one is broken and you look for the fix: --find-fix",
            )
        if cut := self.shallow & {row[0] for row in rows}:
            raise BadRange(
                f"this clone is shallow: its history is cut off at {min(cut)[:12]}, between the two ends",
                value=min(cut),
                field="good",
                advice=self._unshallow(),
            )
        return Range.of([row[0] for row in rows], {row[0]: row[1:] for row in rows}, first_parent, olds)

    def halfway(self, olds: Sequence[str], new: str, *, first_parent: bool) -> str:
        """What `git bisect` would test."""
        options = ["--bisect", *(["--first-parent"] if first_parent else [])]
        ends = [new, *(f"^{old}" for old in dict.fromkeys(olds))]
        return self.git.must("rev-list", *options, *ends).text

    @property
    def shallow(self) -> frozenset[str]:
        path = self.common / "shallow"
        return frozenset(path.read_text().split()) if path.exists() else frozenset()

    def _unshallow(self) -> str:
        return "fetch the rest first: git fetch --unshallow"

    def titles(self, shas: Collection[str]) -> dict[str, Title]:
        stdin = "".join(f"{sha}\n" for sha in shas).encode()
        out = self.git.must(
            "log", "--no-walk=unsorted", "--stdin", "-z", "--no-show-signature", _FORMAT, stdin=stdin
        ).out
        parts = out.decode("utf-8", "replace").split("\0")
        return {sha: Title(sha, *rest) for sha, *rest in zip(*[iter(parts)] * 4, strict=False)}

    def tracked_as_is(self, path: str) -> bool:
        """From the top on: git has it, and the user has not changed it since."""
        git = Git(self.top, (f"--git-dir={self.own_dir}", f"--work-tree={self.top}"))
        known = git("ls-files", "--error-unmatch", "--", f":(top,literal){path}").status == 0
        return known and git("diff", "--quiet", "HEAD", "--", f":(top,literal){path}").status == 0


@dataclass(frozen=True)
class Title:
    sha: str
    author: str
    day: str
    subject: str


def _located(git: Git, question: str) -> str:
    try:
        output = git("rev-parse", question)
    except NoGit:
        raise BadRequest("git is not installed here", advice="install git") from None
    if output.status:
        raise BadRequest(f"{git.cwd}: {output.last_error}", advice="go to a checkout, and run it there")
    return output.text


def _why_unknown(checkout: Checkout, ref: str) -> str:
    if checkout.git("rev-parse", "--verify", "--quiet", "HEAD").status and ref == "HEAD":
        return "HEAD names no commit yet"
    if checkout.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{object}}").status == 0:
        return f"{ref} names no commit but something else"
    return f"{ref} names no commit in this repository"


def _advice_on_unknown(checkout: Checkout, ref: str) -> str:
    if checkout.shallow:
        return f"this clone is shallow; {checkout._unshallow()}"
    return "give a SHA, a branch or a tag; for one of another clone: git fetch"
