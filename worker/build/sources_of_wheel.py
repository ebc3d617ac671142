"""Which file of its tree each member of a wheel came from, told from their contents alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from worker.build.trees import Tree
from worker.build.wheel_files import WheelFile


@dataclass(frozen=True)
class Origins:
    """Members by what they are. `sourced`: has the content of that path. `stamped`: of that path, but changed by the
    build. `copied`: has the content of files elsewhere, that lie there under the same name or another.

    `made`: compiled or generated. `folders`: the wheel's folders that hold files of the tree's folder.
    """

    sourced: Mapping[str, str]
    stamped: Mapping[str, str]
    copied: Mapping[str, tuple[str, ...]]
    made: frozenset[str]
    folders: Mapping[str, frozenset[str]]

    def taken(self) -> dict[str, str]:
        """Members by path, of the files that the build took into the wheel."""
        one = {paths[0]: member for member, paths in self.copied.items() if len(paths) == 1}
        return {**one, **{path: member for member, path in [*self.stamped.items(), *self.sourced.items()]}}


def origins(wheel: WheelFile, tree: Tree) -> Origins:
    """Of all members but those that describe the wheel. Errors: CannotOverlay."""
    info = wheel.info
    members = [name for name in wheel.members if not name.endswith("/")]
    code = [name for name in members if name.partition("/")[0] != info]
    prefixes = _prefixes(wheel, tree, code)
    sourced: dict[str, str] = {}
    stamped: dict[str, str] = {}
    copied: dict[str, tuple[str, ...]] = {}
    for member in code:
        path = prefixes.get(_top(member), "") + member
        equal = _equal(wheel, tree, member)
        named = [other for other in equal if _ends_with(other, member)]
        if path in equal:
            sourced[member] = path
        elif len(named) == 1:
            sourced[member] = named[0]
        elif equal and wheel.size(member):
            copied[member] = tuple(equal)
        elif _top(member) in prefixes and path in tree.files:
            stamped[member] = path
    folders = _folders({**sourced, **stamped, **_alike(copied)})
    for member in members:
        if member not in code:
            copied |= _licence(wheel, tree, member)
    return Origins(sourced, stamped, copied, frozenset({*members} - {*sourced, *stamped, *copied}), folders)


def _prefixes(wheel: WheelFile, tree: Tree, members: Iterable[str]) -> dict[str, str]:
    """Where in the tree each top-level folder or module of the wheel lies, such as `src/`: what most members say."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for member in members:
        for path in _equal(wheel, tree, member):
            if _ends_with(path, member):
                votes[_top(member)][path[: len(path) - len(member)]] += 1
    return {top: min(count, key=lambda prefix: (-count[prefix], len(prefix))) for top, count in votes.items()}


def _equal(wheel: WheelFile, tree: Tree, member: str) -> list[str]:
    """The paths with this content; large files that no file of the tree can equal are not even read."""
    return tree.by_content.get(wheel.sha256(member), []) if wheel.size(member) in tree.sizes else []


def _licence(wheel: WheelFile, tree: Tree, member: str) -> dict[str, tuple[str, ...]]:
    """Of a member that describes the wheel: the files of the same name and content, such as LICENSE."""
    name = member.rpartition("/")[2]
    paths = [path for path in _equal(wheel, tree, member) if path.rpartition("/")[2] == name]
    inner = member.partition("/licenses/")[2]
    exact = [path for path in paths if path == inner]
    return {member: tuple(exact or paths)} if paths and wheel.size(member) else {}


def _alike(copied: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Those under their own name in another folder: that folder was copied."""
    one = {member: paths[0] for member, paths in copied.items() if len(paths) == 1}
    return {member: path for member, path in one.items() if path.rpartition("/")[2] == member.rpartition("/")[2]}


def _folders(found: Mapping[str, str]) -> dict[str, frozenset[str]]:
    folders: dict[str, set[str]] = defaultdict(set)
    for member, path in found.items():
        folders[path.rpartition("/")[0]].add(member.rpartition("/")[0])
    return {folder: frozenset(there) for folder, there in folders.items()}


def _top(member: str) -> str:
    return member.partition("/")[0]


def _ends_with(path: str, member: str) -> bool:
    return path == member or path.endswith(f"/{member}")
