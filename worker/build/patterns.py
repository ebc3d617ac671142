"""Patterns of a project's set-up that may leave a new file out of the wheel, or do not reach it."""

from __future__ import annotations

import fnmatch
import re

from worker.build.project import Project, strings, under
from worker.build.trees import kind

_TEXTS = ("setup.py", "setup.cfg", "MANIFEST.in")
_LEAVING_OUT = ("exclude", "recursive-exclude", "global-exclude", "prune")


def may_leave_out(path: str, project: Project) -> str | None:
    """The pattern that may, in the broadest reading: names, folders, dotted names."""
    patterns = [pattern for found in under(project.tools, "exclude") for pattern in strings(found)]
    if "MANIFEST.in" in project.tree.files:
        lines = project.tree.read("MANIFEST.in").decode("utf-8", "replace").splitlines()
        words = [line.split() for line in lines]
        patterns += [each for line in words if line and line[0] in _LEAVING_OUT for each in line[1:]]
    return next((pattern for pattern in patterns if _matches(path, pattern)), None)


def reaches(path: str, project: Project) -> bool:
    """Whether the set-up takes a file of this kind at this place, where it names what it takes."""
    if project.is_set_up and kind(path) != ".py":
        texts = [project.tree.read(name).decode("utf-8", "replace") for name in _TEXTS if name in project.tree.files]
        all_of_it = re.compile(rf"(?:^|[\s\"'/,])\*{re.escape(kind(path))}(?![\w.])", re.MULTILINE)
        return any(all_of_it.search(text) for text in [*strings(project.tools), *texts])
    if project.backend == "hatchling":
        hatch = project.tools.get("hatch", {})
        named = [each for name in ("packages", "only-include", "include") for each in under(hatch, name)]
        patterns = [pattern for each in named for pattern in strings(each)]
        return not patterns or any(_is_in(path, pattern) for pattern in patterns)
    return True


def _matches(path: str, pattern: str) -> bool:
    plain = pattern.strip("/").removeprefix("**/").strip("*/") or "*"
    forms = {plain, plain.replace(".", "/")}
    parts = path.split("/")
    return any(
        fnmatch.fnmatchcase(path, f"*{form}*") or any(fnmatch.fnmatchcase(part, form) for part in parts)
        for form in forms
    )


def _is_in(path: str, pattern: str) -> bool:
    plain = pattern.strip("/")
    return path.startswith(f"{plain.removesuffix('/**')}/") or fnmatch.fnmatchcase(path, plain)
