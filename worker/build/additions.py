"""Whether a file that is new in the tree would be in the wheel, told from what the build took before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from worker.build.impossible import CannotOverlay
from worker.build.patterns import may_leave_out, reaches
from worker.build.project import Project
from worker.build.sources_of_wheel import Origins
from worker.build.trees import Tree, below, kind, parents

_PACKAGE = "__init__.py"


@dataclass(frozen=True)
class Additions:
    """`before`: what the base wheel is of, as `origins` says. `tree`: what there is now."""

    before: Project
    tree: Tree
    origins: Origins

    @property
    def base(self) -> Tree:
        return self.before.tree

    @cached_property
    def taken(self) -> Mapping[str, str]:
        return self.origins.taken()

    @cached_property
    def _packages(self) -> frozenset[str]:
        """Folders of Python files that were taken."""
        return frozenset(path.rpartition("/")[0] for path in self.taken if path.endswith(".py"))

    def member(self, path: str) -> str | None:
        """The new file's member; None when the wheel leaves it out. Errors: CannotOverlay when that cannot be told."""
        mapped = next((folder for folder in parents(path) if folder in self.origins.folders), None)
        if not self._is_taken(path, mapped):
            return None
        assert mapped is not None
        there = self.origins.folders[mapped]
        if len(there) > 1:
            raise CannotOverlay(f"{path} is new, and its folder is in the wheel more than once")
        member = f"{min(there)}/{path[len(mapped) :].lstrip('/')}".lstrip("/")
        if member in self.origins.made:
            raise CannotOverlay(f"{path} is new, and the build makes a file in its place")
        return member

    def _is_taken(self, path: str, mapped: str | None) -> bool:
        if mapped is None:
            return self._beside(path)
        for folder in self._mapped_parents(path):
            peers = [other for other in self.base.by_kind.get(kind(path), []) if below(other, folder)]
            beside = [other for other in peers if other.rpartition("/")[0] == path.rpartition("/")[0]]
            taken = {other in self.taken for other in beside or peers}
            if taken == {False}:
                return False
            if taken == {True}:
                if not folder and "/" in path:
                    raise CannotOverlay(f"{path} is in a new folder, which may be a package of the wheel")
                self._check_alike(path)
                self._check_patterns(path)
                self._check_package(path)
                return True
            if len(taken) > 1:
                raise CannotOverlay(f"{path} is new, and of the {kind(path)} files beside it some are in the wheel")
        if not mapped:
            return False  # beside single modules, where projects keep all that is in no wheel
        raise CannotOverlay(f"{path} is new, and no file of its kind tells whether it belongs into the wheel")

    def _mapped_parents(self, path: str) -> list[str]:
        """The folders that hold it, up to the outermost that the wheel has."""
        folders = list(parents(path))
        last = max(number for number, folder in enumerate(folders) if folder in self.origins.folders)
        return folders[: last + 1]

    def _beside(self, path: str) -> bool:
        """Of a file in no folder that the wheel has: it is left out, but for packages where builds look for them."""
        around = {folder for top in self._packages for folder in parents(top)}
        new = next((folder for folder in reversed(list(parents(path))) if folder not in around), None)
        if not path.endswith(".py") or new is None or self.before.lists_packages:
            return False
        if any(below(other, new) for other in self.base.by_kind.get(".py", [])):
            return False  # a folder that the build left out before
        root = next(parents(new))
        if root in around and (self.before.looks_around or not self._leaves_out_some(root)):
            raise CannotOverlay(f"{path} is in a new folder, which may be a package of the wheel")
        return False

    def _leaves_out_some(self, root: str) -> bool:
        """Whether there are Python files in folders of `root` that are not in the wheel."""
        untaken = [path for path in self.base.by_kind.get(".py", []) if path not in self.taken and below(path, root)]
        return any("/" in path[len(root) :].lstrip("/") for path in untaken)

    def _check_patterns(self, path: str) -> None:
        if (pattern := may_leave_out(path, self.before)) is not None:
            raise CannotOverlay(f"{path} is new, and the project's set-up may leave it out by {pattern!r}")
        folder = path.rpartition("/")[0]
        beside = any(other.rpartition("/")[0] == folder for other in self.base.by_kind.get(kind(path), []))
        is_data = kind(path) != ".py" and not beside
        if not reaches(path, self.before) or (is_data and not self._takes_all(path)):
            raise CannotOverlay(f"{path} is new, and the project's set-up may not reach it")

    def _takes_all(self, path: str) -> bool:
        """Whether the build takes folders as they are: nothing of the outermost was left out."""
        top = self._mapped_parents(path)[-1]
        whole = all(other in self.taken for other in self.base.files if below(other, top))
        return whole and not self.before.is_set_up

    def _check_alike(self, path: str) -> None:
        """Left out by a pattern, maybe: the name has much in common with a file that was left out."""
        top = next((each for each in reversed(list(parents(path))) if each in self.origins.folders), "")
        untaken = [
            other for other in self.base.by_kind.get(kind(path), []) if other not in self.taken and below(other, top)
        ]
        for other in untaken:
            if _traits(path, top) & _traits(other, top) - self._traits_of_taken:
                raise CannotOverlay(f"{path} is new, and resembles {other}, which the wheel leaves out")

    @cached_property
    def _traits_of_taken(self) -> frozenset[str]:
        return frozenset(trait for path in self.taken for trait in _traits(path, ""))

    def _check_package(self, path: str) -> None:
        """A Python file in new folders: it counts when they are packages as the others are."""
        new = [folder for folder in parents(path) if folder and folder not in self.origins.folders]
        if not path.endswith(".py") or not new:
            return
        if self.before.lists_packages:
            raise CannotOverlay(f"{path} is in a new folder, and the project's set-up names its packages one by one")
        regular = all(f"{each}/{_PACKAGE}" in self.base.files for each in self._packages if each)
        within = [folder for folder in new if any(up in self._packages for up in parents(folder))]
        if regular and any(f"{folder}/{_PACKAGE}" not in self.tree.files for folder in within):
            raise CannotOverlay(f"{path} is in a new folder without {_PACKAGE}, unlike all that the wheel holds")


def check_packages(base: Tree, tree: Tree, taken: Mapping[str, str]) -> None:
    """Errors: CannotOverlay where a folder becomes a package or is none any more, which builds take differently."""
    folders = {path.rpartition("/")[0] for path in taken if path.endswith(".py")}
    for folder in sorted(folders - {""}):
        init = f"{folder}/{_PACKAGE}"
        still = any(path.rpartition("/")[0] == folder for path in tree.files if path.startswith(f"{folder}/"))
        if (init in base.files) != (init in tree.files) and still:
            raise CannotOverlay(
                f"{init} was {'removed' if init in base.files else 'added'} and its folder is still there"
            )


def _traits(path: str, top: str) -> set[str]:
    """Its name, the name's first and last word, and its folders below `top`."""
    *folders, name = path[len(top) :].strip("/").split("/")
    words = re.split(r"[._-]", name.rpartition(".")[0] or name)
    return {f"{folder}/" for folder in folders} | {name, f"{words[0]}*", f"*{words[-1]}"}
