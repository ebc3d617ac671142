"""A wheel, the tree that it is of, and another tree: what came from where, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from worker.build import core_metadata
from worker.build.build_code import BuildCode
from worker.build.project import Project, changed_fields
from worker.build.sources_of_wheel import Origins, origins
from worker.build.trees import Tree
from worker.build.wheel_files import WheelFile


@dataclass(frozen=True)
class Comparison:
    """`before`: what `wheel` is of, the commit `base_sha`. `after`: what a wheel is wanted of."""

    wheel: WheelFile
    before: Project
    after: Project
    base_sha: str

    def differs(self, path: str) -> bool:
        return self.before.tree.sha256(path) != self.after.tree.sha256(path)

    @cached_property
    def origins(self) -> Origins:
        return origins(self.wheel, self.before.tree)

    @cached_property
    def taken(self) -> Mapping[str, str]:
        return self.origins.taken()

    @cached_property
    def code(self) -> BuildCode:
        """What the build runs."""
        return BuildCode(self.before, self.after.tree, self.taken)

    @cached_property
    def fields(self) -> frozenset[str]:
        return changed_fields(self.before, self.after)

    @cached_property
    def metadata(self) -> tuple[list[core_metadata.Line], bytes | None]:
        """The header lines, and the text after them."""
        return core_metadata.split(self.wheel.read(f"{self.wheel.info}/METADATA"))

    @cached_property
    def readme(self) -> str | None:
        """The file that is the wheel's description."""
        body = self.metadata[1] or b""
        fitting = (path for path in self.readmes if path in self.before.tree.files)
        described = (path for path in fitting if core_metadata.described(body, self.before.tree.read(path)))
        return next(described, None) if body else None

    @property
    def readmes(self) -> list[str]:
        """The files that may be."""
        return [self.before.readme] if self.before.readme else _readmes(self.before.tree)


def _readmes(tree: Tree) -> list[str]:
    return [path for path in sorted(tree.files) if "/" not in path and path.lower().startswith("readme")]
