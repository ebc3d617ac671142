"""What pyproject.toml and its like say about how a wheel is made, and what a change of them means for it."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from worker.build.impossible import CannotOverlay
from worker.build.trees import Tree, below

PYPROJECT = "pyproject.toml"
#: Files beside it that steer a build: a change of them can change anything.
STEERING = (
    "setup.py", "setup.cfg", "MANIFEST.in", "hatch.toml", "hatch_build.py", "build.py", "CMakeLists.txt",
    "meson.build", "meson_options.txt", "meson.options", "Cargo.toml", "Cargo.lock", "poetry.lock",
)  # fmt: skip
#: Tables of tools that have no part in builds; of all others a change counts.
APART = frozenset(
    """
    bandit basedpyright black bumpversion bumpver cibuildwheel codespell commitizen coverage deptry flake8
    importlinter interrogate isort mypy nox pixi poe poethepoet pydocstyle pylint pyrefly pyright pytest
    pytest-enabler refurb repo-review ruff semantic_release taskipy towncrier tox ty typos vulture yapf
    """.split()  # noqa: SIM905 (a list of so many is not read)
)
#: Fields of [project] whose lines in the metadata are known.
REWRITTEN = frozenset(
    {"version", "description", "dependencies", "requires-python", "classifiers", "urls", "keywords"}
    | {"authors", "maintainers", "scripts", "gui-scripts", "entry-points"}
)
_LICENCES = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "AUTHORS*")
_IGNORES = (".gitignore", ".hgignore")
_VERSION_LINE = re.compile(rb"^\s*(?:__)?version(?:__)?(?:_tuple)?\b.*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Project:
    tree: Tree

    @cached_property
    def toml(self) -> Mapping[str, Any]:
        if PYPROJECT not in self.tree.files:
            return {}
        try:
            return tomllib.loads(self.tree.read(PYPROJECT).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise CannotOverlay(f"{PYPROJECT} cannot be read: {str(error)[:200]}") from error

    @cached_property
    def table(self) -> Mapping[str, Any]:
        """[project]."""
        return _table(self.toml, "project")

    @cached_property
    def system(self) -> Mapping[str, Any]:
        return _table(self.toml, "build-system")

    @property
    def backend(self) -> str:
        """The package that builds, such as setuptools."""
        return str(self.system.get("build-backend", "setuptools")).partition(".")[0].partition(":")[0]

    @cached_property
    def tools(self) -> Mapping[str, Any]:
        """Tables that a build may read."""
        apart = APART if self.backend == "uv_build" else APART | {"uv"}
        return {name: table for name, table in _table(self.toml, "tool").items() if name not in apart}

    @property
    def readme(self) -> str | None:
        named = self.table.get("readme")
        return _text(named.get("file") if isinstance(named, Mapping) else named)

    @property
    def is_set_up(self) -> bool:
        """Whether setuptools makes the wheel, or may."""
        return self.backend == "setuptools"

    @property
    def lists_packages(self) -> bool:
        """Whether packages are named one by one, rather than found."""
        if not self.is_set_up:
            return False
        packages = _table(self.tools, "setuptools").get("packages")
        set_up = b"".join(self.tree.read(name) for name in ("setup.py", "setup.cfg") if name in self.tree.files)
        return isinstance(packages, list) or (b"packages" in set_up and b"find" not in set_up)

    @property
    def looks_around(self) -> bool:
        """Whether packages are looked for where none was before."""
        find = _table(_table(_table(self.tools, "setuptools"), "packages"), "find")
        return self.is_set_up and not find.get("include")


def changed_fields(before: Project, after: Project) -> frozenset[str]:
    """Of [project], those whose lines are to be written anew. Errors: CannotOverlay for changes that may mean more."""
    if before.system != after.system:
        raise CannotOverlay(f"[build-system] of {PYPROJECT} changed")
    for name in sorted({*before.tools, *after.tools}):
        if before.tools.get(name) != after.tools.get(name):
            raise CannotOverlay(f"[tool.{name}] of {PYPROJECT} changed")
    fields = {*before.table, *after.table}
    changed = {name for name in fields if before.table.get(name) != after.table.get(name)}
    if changed - REWRITTEN:
        raise CannotOverlay(f"project.{min(changed - REWRITTEN)} of {PYPROJECT} changed")
    return frozenset(changed)


def check_steering(before: Project, after: Project, taken: Mapping[str, str], readme: str | None) -> None:
    """Errors: CannotOverlay when a file changed that says how wheels are made, or what their metadata are.

    `taken`: paths of which the wheel has the content, `readme`: the one that is its description.
    """
    for path in _changed(before.tree, after.tree):
        if _steers(path, before, taken):
            raise CannotOverlay(f"{path} changed, which steers the build")
        if _is_licence(path, before) and (path in before.tree.files) != (path in after.tree.files):
            raise CannotOverlay(f"{path} was {'removed' if path in before.tree.files else 'added'}")
        if path == _licence_text(before):
            raise CannotOverlay(f"{path} changed, whose text is part of the metadata")
        if path != readme and _gives_metadata(path, before, after, taken):
            raise CannotOverlay(f"{path} changed, from which the build may take metadata")


def _changed(before: Tree, after: Tree) -> Iterator[str]:
    for path in sorted({*before.files, *after.files} - {PYPROJECT}):
        if before.sha256(path) != after.sha256(path):
            yield path


def _steers(path: str, project: Project, taken: Mapping[str, str]) -> bool:
    ignores = project.backend in ("hatchling", "scikit_build_core", "pdm") and path.rpartition("/")[2] in _IGNORES
    folders = project.system.get("backend-path")
    own = [str(folder).strip("./") for folder in folders] if isinstance(folders, list) else []
    within = any(below(path, folder) for folder in own if folder)
    beside = "" in own and "/" not in path and path.endswith(".py") and path not in taken
    return path in STEERING or ignores or within or beside


def _is_licence(path: str, project: Project) -> bool:
    named = project.table.get("license-files")
    patterns = named if isinstance(named, list) else _LICENCES
    return (bool(named) or "/" not in path) and any(fnmatch.fnmatchcase(path, str(pattern)) for pattern in patterns)


def _gives_metadata(path: str, before: Project, after: Project, taken: Mapping[str, str]) -> bool:
    """Whether the set-up names the file, or the module that it is, and what it gives may have changed."""
    dynamic = before.table.get("dynamic")
    names = set(strings(before.tools))
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if path in names and path in taken and before.table and not dynamic:
        return False
    if path in names or (dynamic and any(_names_module(name, module) for name in names)):
        lines = _version_lines(path, before.tree)
        return not (path in taken and lines and lines == _version_lines(path, after.tree))
    if before.table and not dynamic:
        return False
    if path in taken and path.endswith(".py"):
        return _is_told(path, before) and _version_lines(path, before.tree) != _version_lines(path, after.tree)
    return "requirements" in path.lower() or _is_told(path, before)


def _is_told(path: str, project: Project) -> bool:
    """Whether setup.py or setup.cfg names a file like this."""
    files = project.tree.files
    text = b"".join(project.tree.read(name) for name in ("setup.py", "setup.cfg") if name in files)
    return path.rpartition("/")[2].encode() in text


def _names_module(name: str, module: str) -> bool:
    """`pkg.__version__` names src/pkg/__init__.py."""
    outer = name.rpartition(".")[0]
    return bool(outer) and (module == outer or module.endswith(f".{outer}"))


def _version_lines(path: str, tree: Tree) -> list[bytes]:
    return _VERSION_LINE.findall(tree.read(path)) if path in tree.files else []


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def _table(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parent.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _licence_text(project: Project) -> str | None:
    licence = project.table.get("license")
    return _text(licence.get("file")) if isinstance(licence, Mapping) else None
