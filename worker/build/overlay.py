"""The wheel of a commit without a build: that of another commit with the same native code, and this commit's files.

It replays how the base wheel came out of its tree. Each member is *sourced* (it has the content of a file, and gets
what that file has now), *stamped* (of a file, but changed by the build: kept while the file is the same) or *made*
(compiled or generated: kept). Nothing of either commit is run, and nothing is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from worker.build import core_metadata, record
from worker.build.additions import Additions
from worker.build.comparison import Comparison
from worker.build.impossible import CannotOverlay
from worker.build.project import Project, puts
from worker.build.trees import Tree, read_tree
from worker.build.unchanged import check
from worker.build.wheel_files import Member, WheelFile, opened, write

__all__ = ["CannotOverlay", "Inputs", "Made", "overlay"]


@dataclass(frozen=True)
class Inputs:
    """`base_tree`, `tree`: what `git archive` wrote of the commit that `wheel` is of, and of the one that is wanted."""

    wheel: Path
    base_sha: str
    base_tree: Path
    tree: Path


@dataclass(frozen=True)
class Made:
    """The wheel, and how many of its members came how."""

    wheel: Path
    changed: int
    added: int
    removed: int
    kept: int

    def __str__(self) -> str:
        return (
            f"{self.wheel.name} put together without a build: {self.kept} members of the base wheel, "
            f"{self.changed} changed, {self.added} added, {self.removed} removed"
        )


def overlay(inputs: Inputs, into: Path) -> Made:
    """Errors: CannotOverlay when only a build can tell what the wheel holds; OSError."""
    before, after = read_tree(inputs.base_tree), read_tree(inputs.tree)
    wheel = opened(inputs.wheel)
    with wheel.zip:
        return _Replay(Comparison(wheel, Project(before), Project(after), inputs.base_sha)).run(into)


@dataclass(frozen=True)
class _Replay:
    it: Comparison

    def run(self, into: Path) -> Made:
        check(self.it)
        content, gone = self._changes(), self._gone()
        added = self._added()
        content |= self._metadata()
        members = list(self._members(content, added, gone))
        target = into / self._name()
        write(target, self.wheel, self._with_record(members))
        changed = sum(1 for member in members if member.content is not None) - len(added)
        return Made(target, changed, len(added), len(gone), len(members) - changed - len(added))

    @property
    def wheel(self) -> WheelFile:
        return self.it.wheel

    @property
    def after(self) -> Tree:
        return self.it.after.tree

    # What changes.

    def _changes(self) -> dict[str, bytes]:
        """New content by member, of files that are still there."""
        found = {}
        for member, path in self.it.origins.sourced.items():
            if path in self.after.files and self.it.differs(path):
                found[member] = self.after.read(path)
        for member, paths in self.it.origins.copied.items():
            differing = [path for path in paths if self.it.differs(path)]
            if differing and (
                len(paths) > 1 or paths[0] not in self.after.files or not self._is_copied(member, paths[0])
            ):
                raise CannotOverlay(f"{differing[0]} changed, and {member} of the base wheel may be a copy of it")
            if differing:
                found[member] = self.after.read(paths[0])
        return found

    def _is_copied(self, member: str, path: str) -> bool:
        """Whether it has the file's content not by chance: by the file's name, or by a table that says so."""
        named = member.rpartition("/")[2] == path.rpartition("/")[2]
        is_info = member.startswith(f"{self.wheel.info}/")
        by_code = self.it.code.words.names(path) or self.it.code.native.names(path)
        return (named and (is_info or not by_code)) or puts(self.it.before.tools, path, member)

    def _gone(self) -> set[str]:
        gone = {member for member, path in self.it.origins.sourced.items() if path not in self.after.files}
        tops = {name.partition("/")[0] for name in self.wheel.members if name not in gone}
        for member in sorted(gone):
            if member.partition("/")[0] not in tops and f"{self.wheel.info}/top_level.txt" in self.wheel.members:
                raise CannotOverlay(f"{member} was removed, and with it a name that top_level.txt lists")
        return gone

    def _added(self) -> dict[str, str]:
        """Path by member, of files that are new."""
        additions = Additions(self.it.before, self.after, self.it.origins)
        new = sorted({*self.after.files} - {*self.it.before.tree.files})
        members = ((additions.member(path), path) for path in new)
        return {member: path for member, path in members if member is not None}

    def _metadata(self) -> dict[str, bytes]:
        info, (lines, body), readme = self.wheel.info, self.it.metadata, self.it.readme
        found: dict[str, bytes] = {}
        if body is not None and readme is not None and self.it.differs(readme):
            way = core_metadata.described(body, self.it.before.tree.read(readme))
            assert way is not None
            body = way(self.after.read(readme))
        old, new = self.it.before.table, self.it.after.table
        headers = core_metadata.with_fields(lines, old, new, self.it.fields, self.it.before.backend)
        if (headers, body) != self.it.metadata:
            found[f"{info}/METADATA"] = core_metadata.joined(headers, body)
        if self.it.fields & core_metadata.POINTS:
            member = f"{info}/entry_points.txt"
            text = self.wheel.read(member) if member in self.wheel.members else b""
            found[member] = core_metadata.entry_points(text, old, new)
            if not text:
                raise CannotOverlay("pyproject.toml has entry points, which the base wheel has not")
        return found

    # The new wheel.

    @cached_property
    def _version(self) -> str:
        if "version" not in self.it.fields:
            return self.wheel.version
        old, new = self.it.before.table.get("version"), self.it.after.table.get("version")
        return core_metadata.renamed_version(self.wheel.version, str(old), str(new))

    def _name(self) -> str:
        return f"{self.wheel.distribution}-{self._version}-{self.wheel.tags}.whl"

    def _renamed(self, member: str) -> str:
        top, slash, rest = member.partition("/")
        if slash and top in (self.wheel.info, self.wheel.data):
            return f"{self.wheel.distribution}-{self._version}.{top.rpartition('.')[2]}/{rest}"
        return member

    def _members(self, content: Mapping[str, bytes], added: Mapping[str, str], gone: set[str]) -> Iterator[Member]:
        kept = [name for name in self.wheel.members if name not in gone and not self._is_empty_folder(name, gone)]
        for name in _placed(kept, list(added), self.wheel.info, self.it.before.backend):
            if name in added:
                entry = self.after.files[added[name]]
                yield Member(name, self._like(name), self.after.read(added[name]), entry.executable)
            else:
                yield Member(self._renamed(name), name, content.get(name), self._executable(name))

    def _is_empty_folder(self, name: str, gone: set[str]) -> bool:
        if not name.endswith("/"):
            return False
        inside = [other for other in self.wheel.members if other.startswith(name) and not other.endswith("/")]
        return bool(inside) and gone.issuperset(inside)

    def _executable(self, member: str) -> bool | None:
        """None unless the file's mode changed, and the wheel follows it."""
        path = self.it.origins.sourced.get(member)
        old, new = self.it.before.tree.files.get(path or ""), self.after.files.get(path or "")
        if old is None or new is None or old.executable == new.executable:
            return None
        follows = bool((self.wheel.zip.getinfo(member).external_attr >> 16) & 0o100) == old.executable
        return new.executable if follows else None

    def _like(self, member: str) -> str:
        """The member whose entry is the pattern for a new one: a file of the tree, best in the same folder."""
        folder = member.rpartition("/")[0]
        known = list(self.it.origins.sourced) or list(self.it.origins.stamped)
        return next((name for name in known if name.rpartition("/")[0] == folder), known[0])

    def _with_record(self, members: list[Member]) -> Iterator[Member]:
        own = f"{self.wheel.info}/RECORD"
        changed = {member.name: member.content for member in members if member.content is not None}
        changes = record.Changes([member.name for member in members], self._renamed, changed)
        text = record.rewritten(self.wheel.read(own), self.wheel.members, changes)
        for member in members:
            yield Member(member.name, own, text) if member.like == own and member.content is None else member


def _placed(names: list[str], added: list[str], info: str, backend: str) -> list[str]:
    """The members with the new ones among them, in the order that the base has: by folder, or by name."""
    code = [name for name in names if name.partition("/")[0] != info]
    orders = [_by_folder, _by_name] if backend in ("setuptools", "hatchling") else [_by_name, _by_folder]
    order = next((order for order in orders if code == sorted(code, key=order)), None)
    placed = list(names)
    for name in sorted(added, key=order):
        earlier = [other for other in code if order is None or order(other) < order(name)]
        if order is None:
            folder = name.rpartition("/")[0]
            earlier = [other for other in code if other.rpartition("/")[0] == folder] or code
        at = placed.index(earlier[-1]) + 1 if earlier else 0
        placed.insert(at, name)
        code.insert(code.index(earlier[-1]) + 1 if earlier else 0, name)
    return placed


def _by_name(name: str) -> list[tuple[int, str]]:
    return [(0, name)]


def _by_folder(name: str) -> list[tuple[int, str]]:
    """Of a folder its files first, then the folders in it."""
    *folders, last = name.split("/")
    return [*((1, folder) for folder in folders), (0, last)]
