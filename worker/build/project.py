"""What pyproject.toml and its like say about how a wheel is made, and what a change of them means for it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from worker.build.impossible import CannotOverlay
from worker.build.trees import Tree

PYPROJECT = "pyproject.toml"
#: Files beside it that steer a build: a change of them can change anything.
STEERING = (
    "setup.py", "setup.cfg", "MANIFEST.in", "hatch.toml", "hatch_build.py", "build.py", "CMakeLists.txt",
    "meson.build", "meson_options.txt", "meson.options", "Cargo.toml", "Cargo.lock", "poetry.lock",
)  # fmt: skip
#: Tables of tools that have no part in builds; of all others a change counts.
APART = frozenset(
    """
    bandit basedpyright black bumpver bumpversion codespell commitizen coverage deptry flake8 importlinter interrogate
    isort mypy pydocstyle pylint pyrefly pyright pytest pytest-enabler refurb repo-review ruff semantic_release
    towncrier ty typos vulture yapf
    """.split()  # noqa: SIM905 (a list of so many is not read)
)
#: Fields of [project] whose lines in the metadata are known.
REWRITTEN = frozenset(
    {"version", "description", "dependencies", "requires-python", "classifiers", "urls", "keywords"}
    | {"authors", "maintainers", "scripts", "gui-scripts", "entry-points"}
)
#: A longer pyproject.toml, or one with more dots in a line, is not parsed: nested keys take quadratic time.
_TOML_BYTES, _TOML_DOTS = 64 * 1024, 200
_VERSION_LINE = re.compile(rb"^[ \t]*(?:__)?version(?:__)?(?:_tuple)?\b.*$", re.IGNORECASE | re.MULTILINE)
_PLAIN = re.compile(rb"""\w+[ \t]*(?::[ \t]*[\w.\[\]]+[ \t]*)?=[ \t]*(["'])[^"'\\]*\1[ \t]*(?:#.*)?\r?""")
#: Keys of tables of tools by which a version is more than the plain text that stands in a file.
_COMPUTING = frozenset({"pattern", "regex", "expression", "getter"})
_PLAIN_SOURCES = (None, "regex", "file")


@dataclass(frozen=True)
class Project:
    tree: Tree

    @cached_property
    def toml(self) -> Mapping[str, Any]:
        if PYPROJECT not in self.tree.files:
            return {}
        text = self.tree.read(PYPROJECT)
        if len(text) > _TOML_BYTES or max(line.count(b".") for line in text.split(b"\n")) > _TOML_DOTS:
            raise CannotOverlay(
                f"{PYPROJECT} is not read: it is too large, or has a line of more than {_TOML_DOTS} dots"
            )
        try:
            return tomllib.loads(text.decode("utf-8"))
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
    def computes(self) -> bool:
        """Whether metadata may be more than what stands in pyproject.toml."""
        return bool(self.table.get("dynamic")) or not self.table

    @cached_property
    def named(self) -> frozenset[str]:
        """All names in tables that a build may read; flit reads the module that has the project's name."""
        module = re.sub(r"[-.]+", "_", str(self.table.get("name", "")))
        return frozenset(strings(self.tools)) | ({f"{module}.__version__"} if self.backend == "flit_core" else set())

    @cached_property
    def _modules(self) -> Mapping[str, str]:
        """By module, the name in it that is read: `pkg.__version__` of src/pkg/__init__.py."""
        found = {}
        for name in self.named:
            module, _, attribute = name.partition(":")[0].rpartition(".") if ":" not in name else name.partition(":")
            if module:
                found[module.strip()] = attribute.strip()
        return found

    def names_module(self, path: str) -> str | None:
        """The name that the set-up reads of this module, as `__version__`; "" of one that is named as a file."""
        if path in self.named:
            return ""
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        dotted = (".".join(parts[number:]) for number in range(len(parts)))
        return next((self._modules[each] for each in dotted if each in self._modules), None)

    @cached_property
    def reads_plainly(self) -> bool:
        """Whether a version that is read from a file is the text that stands there."""
        tables = [each for each in under(self.tools, "version") if isinstance(each, Mapping)]
        plain = all(not _COMPUTING & {*each} and each.get("source") in _PLAIN_SOURCES for each in tables)
        return plain and not ("description" in _names(self.table.get("dynamic")) and self.backend == "flit_core")

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


def version_lines(path: str, tree: Tree) -> list[bytes]:
    return _VERSION_LINE.findall(tree.read(path)) if path in tree.files else []


def is_plain(line: bytes) -> bool:
    """Whether the line gives a name a text that stands there."""
    return _PLAIN.fullmatch(line) is not None


def has_plain_version(path: str, tree: Tree) -> bool:
    lines = version_lines(path, tree)
    return bool(lines) and all(is_plain(line) for line in lines)


def under(table: object, word: str) -> Iterator[object]:
    """The values of all keys with this name; of all that hold it, where it is about leaving out."""
    if isinstance(table, Mapping):
        for name, value in table.items():
            if name == word or (word == "exclude" and word in name):
                yield value
            else:
                yield from under(value, word)


def puts(table: object, path: str, member: str) -> bool:
    """Whether a table of files and their places in the wheel has these two."""
    if not isinstance(table, Mapping):
        return False
    return table.get(path) == member or any(puts(each, path, member) for each in table.values())


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


def _names(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
