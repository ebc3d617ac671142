"""What else of a tree decides about the wheel and its metadata, and so has to be as it was."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping

from worker.build.build_code import BuildCode
from worker.build.impossible import CannotOverlay
from worker.build.project import PYPROJECT, STEERING, Project, has_plain_version, is_plain, under, version_lines
from worker.build.trees import Tree, below

_LICENCES = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "AUTHORS*")
_IGNORES = (".gitignore", ".hgignore")
#: What git fills in when it writes an archive: the commit, its nearest tag.
_ATTRIBUTES, _FILLED_IN = ".gitattributes", "export-subst"
_ARCHIVAL = ("*_archival.txt", "*_archival.json")
_PROSE = (".md", ".rst")


def check_steering(code: BuildCode, readme: str | None) -> None:
    """Errors: CannotOverlay when a file changed that says how wheels are made, or what their metadata are.

    `readme`: the file that is the wheel's description.
    """
    before, after, taken = code.project, code.after, code.taken
    filled_in = [*_ARCHIVAL, *_filled_in(before.tree), *_filled_in(after)]
    for path in _changed(before.tree, after):
        if _steers(path, before, taken):
            raise CannotOverlay(f"{path} changed, which steers the build")
        if _is_licence(path, before) and (path in before.tree.files) != (path in after.files):
            raise CannotOverlay(f"{path} was {'removed' if path in before.tree.files else 'added'}")
        if path == _licence_text(before):
            raise CannotOverlay(f"{path} changed, whose text is part of the metadata")
        if (before.computes or path not in taken) and any(_fits(path, pattern) for pattern in filled_in):
            raise CannotOverlay(f"{path} changed, into which git writes which commit it is of")
        if path in code.runs and not _says_the_same(path, code):
            raise CannotOverlay(f"{path} changed, which the build runs")
        if path != readme and _gives_metadata(path, code):
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


def _licence_text(project: Project) -> str | None:
    licence = project.table.get("license")
    named = licence.get("file") if isinstance(licence, Mapping) else None
    return named if isinstance(named, str) else None


def _filled_in(tree: Tree) -> Iterator[str]:
    """The patterns of files that have git's attribute, in whatever folder they are said."""
    for path in tree.by_name.get(_ATTRIBUTES, []):
        for line in tree.read(path).decode("utf-8", "replace").splitlines():
            pattern, *attributes = line.split() or [""]
            if _FILLED_IN in attributes:
                yield "*" if pattern.startswith("[attr]") else pattern


def _fits(path: str, pattern: str) -> bool:
    """In the broadest reading."""
    last = pattern.strip("/").rpartition("/")[2] or "*"
    return fnmatch.fnmatchcase(path.rpartition("/")[2], last.strip('"'))


def _gives_metadata(path: str, code: BuildCode) -> bool:
    """Whether the set-up names the file, or the module that it is, and what it gives may have changed."""
    project, taken = code.project, code.taken
    if path in project.named and not (path in taken and not project.computes):
        return not _says_the_same(path, code)
    if not project.computes:
        return path not in taken and code.names(path)
    if path in taken and path.endswith(".py"):
        changed = version_lines(path, project.tree) != version_lines(path, code.after)
        return (changed or _is_named(path, code)) and not _says_the_same(path, code)
    if _is_named(path, code) or "requirements" in path.lower():
        return True
    if path in taken:
        return False
    words, settings, folders = code.words, code.settings, code.apart(path)
    by_folder = not folders.isdisjoint(words.folders | settings.folders)
    return by_folder or words.may_put_together(path) or settings.names(path) or _is_guessed(path, project)


def _is_named(path: str, code: BuildCode) -> bool:
    words = code.words
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    dotted = any(f".{module}".endswith(f".{name.rpartition('.')[0]}") for name in words.dotted)
    return code.project.names_module(path) is not None or words.names(path) or (path.endswith(".py") and dotted)


def _is_guessed(path: str, project: Project) -> bool:
    """Plugins of hatchling read files that nobody names, such as package.json."""
    hooked = any(True for each in under(project.tools, "metadata") for _ in under(each, "hooks"))
    is_apart = "/" in path or path.startswith(".") or path.endswith(_PROSE)
    return not is_apart and (hooked or not project.reads_plainly)


def _says_the_same(path: str, code: BuildCode) -> bool:
    """Whether all that is read of a module in the wheel is plain texts, its version among them, and as it was."""
    project = code.project
    attribute = project.names_module(path)
    if path not in code.taken or path not in code.after.files or not project.reads_plainly or code.words.has("__doc__"):
        return False
    if not has_plain_version(path, project.tree) or not has_plain_version(path, code.after):
        return False
    names = {each.encode() for each in code.words.single} | ({attribute.encode()} if attribute else set())
    before, after = _told(path, project.tree, names), _told(path, code.after, names)
    read = [line.split(b"=")[0].split(b":")[0].strip() for line in before]
    return before == after and all(is_plain(line) for line in before) and (not attribute or attribute.encode() in read)


def _told(path: str, tree: Tree, names: set[bytes]) -> list[bytes]:
    """The lines that give a version, or one of these names, something."""
    lines = re.findall(rb"^(\w+)([ \t]*[:=+][^\n]*)", tree.read(path), re.MULTILINE)
    return [*version_lines(path, tree), *(name + rest for name, rest in lines if name in names)]
