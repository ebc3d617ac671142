"""What the code of a build runs and names: a file that it names it may read, whatever for."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from worker.build.impossible import CannotOverlay
from worker.build.project import Project, has_plain_version, strings, under
from worker.build.trees import Tree, below, kind, parents

#: Where the code of a build begins.
_SCRIPTS = ("setup.py", "setup.cfg", "hatch_build.py", "hatch.toml", "build.py")
#: What else says of what compiled and generated files are made.
_NATIVE = ("CMakeLists.txt", "meson.build", "Makefile")
#: Files that builds read values from; the parts of their names are put together.
_DATA = frozenset({".txt", ".json", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".in", ".lock", ".env", ".xml"})
_ROOTS = ("", "src", "python", "lib")
_TEXT_BYTES = 1024 * 1024
_FILES = 2000
_TARGETS = 10_000
#: Letters of a name's part that is looked for, and of an import in several lines.
_PART, _STATEMENT = 4, 4000

#: Tables of pyproject.toml by backend, and what in them has no part in a wheel.
_TABLES = {"hatchling": "hatch", "flit_core": "flit", "scikit_build_core": "scikit-build", "mesonpy": "meson-python"}
_NO_BUILD = ("envs", "sdist", "scripts", "group", "dependencies", "dev-dependencies")
#: Sections of setup.cfg that a build reads.
_SECTIONS = ("metadata", "options", "files", "build", "bdist", "install", "egg_info", "versioneer", "entry_points")

_LEFT_OUT = re.compile(r"^exclude[ \t]*=[^\n]*(?:\n[ \t]+[^\n]*)*", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import\b)([^\n]*)", re.MULTILINE)
_REMARK = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_ENTRY_POINT = re.compile(r"=[ \t]*[\w.]+:[\w.]+")
_EXCLUDED = re.compile(r"exclude\w*[ \t]*=[ \t]*[\[(][^\])]{0,1000}[\])]")
_ASSIGNED = re.compile(r"\b\w+[ \t]*=(?!=)")
_KEY = re.compile(r"""["'][\w-]+["'][ \t]*:""")


@dataclass(frozen=True)
class Words:
    """What a text names."""

    text: str

    @cached_property
    def single(self) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", _ASSIGNED.sub(" ", self.text)))

    @cached_property
    def folders(self) -> frozenset[str]:
        """Without the names of extras, such as docs and tests."""
        return frozenset(re.findall(r"\w+", _KEY.sub(" ", _ASSIGNED.sub(" ", self.text))))

    @cached_property
    def dotted(self) -> frozenset[str]:
        return frozenset(re.findall(r"(?<![\w.])\w+(?:\.\w+)+", self.text))

    def has(self, word: str) -> bool:
        return bool(word) and (word in self.single if re.fullmatch(r"\w+", word) else word in self.text)

    def names(self, path: str) -> bool:
        """By the file's name, or by what comes before the suffix."""
        folder, _, name = path.rpartition("/")
        if name == "__init__.py":
            return self.has(folder.rpartition("/")[2]) and self.has(name) if folder else self.has(name)
        return self.has(name) or self.has(name.partition(".")[0])

    def has_suffix(self, path: str) -> bool:
        """Such as `*.txt`, or `name + ".txt"`."""
        suffix = kind(path)
        return suffix.startswith(".") and bool(re.search(rf"(?<!\w){re.escape(suffix)}(?!\w)", self.text))

    def may_put_together(self, path: str) -> bool:
        """By suffix, or by a part of the name, of a file that is not in the wheel."""
        *folders, name = path.split("/")
        if kind(path) == ".py" or any(folder.startswith(".") for folder in folders):
            return False
        parts = (
            re.findall(r"[^\W_]+", name.rpartition(".")[0] or name) if kind(path) in _DATA or "." not in name else []
        )
        return self.has_suffix(path) or any(part in self.folders for part in parts if len(part) >= _PART)


@dataclass(frozen=True)
class BuildCode:
    """Of the commit that was built. `after`: the other tree, whose new files the same code may run.

    `taken`: paths of which the wheel has the content.
    """

    project: Project
    after: Tree
    taken: Mapping[str, str]

    def names(self, path: str) -> bool:
        """Whether the code names the file itself, in its folder or as the only one of that name."""
        folder, _, name = path.rpartition("/")
        is_other = bool(folder) and name in self.project.tree.files
        by_folder = folder.rpartition("/")[2] in self.words.single
        return self.words.has(name) and (by_folder or not is_other)

    def apart(self, path: str) -> frozenset[str]:
        """The names of the folders that hold the file, but for those that hold files of the wheel."""
        return frozenset(folder.rpartition("/")[2] for folder in parents(path) if folder not in self._packed)

    @cached_property
    def _packed(self) -> frozenset[str]:
        return frozenset(folder for path in self.taken for folder in parents(path))

    @cached_property
    def runs(self) -> frozenset[str]:
        """Paths of what the build runs, reads as code or imports."""
        return frozenset(self._found)

    @cached_property
    def words(self) -> Words:
        """Of that code."""
        return Words("\n".join(self._found.values()))

    @cached_property
    def settings(self) -> Words:
        """Of the backend's own tables, but for what they leave out."""
        own = _TABLES.get(self.project.backend, self.project.backend)
        found = (table for name, table in self.project.tools.items() if name.startswith(own))
        return Words("\n".join(text for table in found for text in _kept(table)))

    @cached_property
    def native(self) -> Words:
        """Of what describes how compiled and generated files are made."""
        tree = self.project.tree
        found = [path for name in _NATIVE for path in tree.by_name.get(name, [])]
        found += [path for suffix in (".cmake", ".mk") for path in tree.by_kind.get(suffix, [])]
        return Words("\n".join(self._text(path) for path in sorted(found)[:_FILES]))

    @property
    def customises(self) -> bool:
        """Whether the project's own code writes files of the wheel, or may."""
        return any(not path.startswith("setup.") for path in self._begins()) or "cmdclass" in self.words.text

    @cached_property
    def _found(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        waiting = [*self._begins(), *self._version_modules()]
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            if len(found) >= _FILES:
                raise CannotOverlay(f"the code of the build imports more than {_FILES} files, {path} among them")
            is_known = path in self.taken and has_plain_version(path, self.project.tree)
            found[path] = "" if is_known else self._text(path)
            waiting += () if is_known else self._run_by(path, found[path])
        return found

    def _begins(self) -> list[str]:
        tree = self.project.tree
        hooks = [str(each) for table in under(self.project.tools, "hooks") for each in under(table, "path")]
        own = [path for path in tree.by_kind.get(".py", []) if any(below(path, each) for each in self._own)]
        return sorted({*(path for path in (*_SCRIPTS, *hooks) if path in tree.files), *own})

    @property
    def _own(self) -> list[str]:
        """The folders of a backend that is in the tree."""
        folders = self.project.system.get("backend-path")
        return (
            [each for each in (str(each).strip("./") for each in folders) if each] if isinstance(folders, list) else []
        )

    def _version_modules(self) -> list[str]:
        """Modules that the set-up names, unless their version stands there plainly: they are run."""
        if not self.project.computes:
            return []
        modules = self.project.tree.by_kind.get(".py", [])
        return [path for path in modules if self.project.names_module(path) is not None]

    def _text(self, path: str) -> str:
        tree = self.project.tree
        if path not in tree.files:
            return ""
        if tree.files[path].size > _TEXT_BYTES:
            raise CannotOverlay(f"{path} of the build has {tree.files[path].size} bytes, more than is looked through")
        text = _REMARK.sub("", tree.read(path).decode("utf-8", "replace"))
        text = _of_setup_cfg(text) if path.endswith(".cfg") else text
        return _EXCLUDED.sub(" ", _ENTRY_POINT.sub(" ", text))

    def _run_by(self, path: str, text: str) -> Iterator[str]:
        if path.endswith(".py"):
            targets = {*_imported(path, text)}
            if len(targets) > _TARGETS:
                raise CannotOverlay(f"{path} of the build imports more than {_TARGETS} modules")
            for target in sorted(targets):
                yield from self._modules(target, path, anywhere="sys.path" in text)
        words = Words(text)
        for tree in (self.project.tree, self.after):
            for name in set(re.findall(r"(?<![\w-])[\w-]+\.py\b", text)):
                yield from (each for each in tree.by_name.get(name, []) if words.names(each))

    def _modules(self, target: str, path: str, *, anywhere: bool) -> Iterator[str]:
        """Files of a module, written as a path; a relative one begins with "/"."""
        own = path.rpartition("/")[0]
        roots = [""] if target.startswith("/") else [*_ROOTS, own, *self._own]
        places = {f"{root}/{target.strip('/')}".strip("/") for root in roots}
        last = target.rpartition("/")[2]
        is_foreign = target.strip("/").partition("/")[0] in sys.stdlib_module_names
        for file in self._by_last.get(last, []):
            module = _module(file)
            if module in places or (anywhere and not is_foreign and f"/{module}".endswith(f"/{target.strip('/')}")):
                yield file

    @cached_property
    def _by_last(self) -> Mapping[str, list[str]]:
        """Modules of both trees by the last part of their dotted names."""
        found = defaultdict(list)
        for tree in (self.project.tree, self.after):
            for path in tree.by_kind.get(".py", []):
                found[_module(path).rpartition("/")[2]].append(path)
        return found


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__")


def _imported(path: str, text: str) -> Iterator[str]:
    for found in _IMPORT.finditer(text):
        rest = found[2]
        if "(" in rest and ")" not in rest:
            rest += text[found.end() : found.end() + _STATEMENT].partition(")")[0]
        names = [name.strip(".") for name in re.findall(r"[\w.]+", rest)]
        if found[1] is None:
            targets = names
        else:
            dots = len(found[1]) - len(found[1].lstrip("."))
            folder = [*parents(path), "", ""][min(dots, 2 + path.count("/")) - 1] if dots else ""
            outer = found[1].strip(".")
            targets = [outer, *(f"{outer}.{name}".strip(".") for name in names)]
            if dots:
                yield from (f"/{folder}/{each.replace('.', '/')}".rstrip("/") for each in targets)
                continue
        for target in targets:
            parts = target.split(".")
            yield from ("/".join(parts[: number + 1]) for number in range(len(parts)) if target)


def _kept(table: object) -> Iterator[str]:
    if isinstance(table, Mapping):
        for name, each in table.items():
            if "exclude" not in name and name not in _NO_BUILD:
                yield from _kept(each)
    else:
        yield from strings(table)


def _of_setup_cfg(text: str) -> str:
    """Without the sections of other tools, and what is left out."""
    sections = [f"[{each}" for each in text.split("\n[")]
    own = [each for each in sections if each.lstrip("[").startswith(_SECTIONS)]
    return _LEFT_OUT.sub("", "\n".join(own))
