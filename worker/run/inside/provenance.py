# ruff: noqa: PTH110, PTH112, PTH113, PTH114, PTH116, PTH118, PTH119, PTH120, PTH123, UP031 (see __init__)
"""Whether the package under test is still the one that was installed, and the one that an import would find.

Of each file that RECORD names its size, times and number are kept: a look at 5,000 of them took 45 ms on two busy
cores, twice a run, where hashing a wheel of a gigabyte takes seconds. Only what these do not agree about is hashed,
against RECORD: the same wheel installed once more is no replacement. Compiled files are passed over, since every
program writes them.
"""

from __future__ import annotations

import os
import stat

from .packages import entries, project, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    Stat = tuple[int, int, int, int]

INFO = ".dist-info"
#: What a package's folder may hold besides it by accident is not looked for elsewhere.
COMMON = ("tests", "test", "docs", "examples", "benchmarks", "tools", "scripts", "src")
#: So many folders are looked into for other virtual environments.
FOLDERS = 500
#: So many names are told.
NAMES = 3
#: Of a file that is read as text.
TEXT = 16 * 1024 * 1024
#: What Python runs when it starts, before anything is imported.
HOOKS = ("sitecustomize.py", "usercustomize.py")


class Package:
    """`env`, `work`: of the run. Made once the wheel is installed, asked when all is over."""

    def __init__(self, env: dict[str, str], work: str, order: dict[str, Any]) -> None:
        self.env, self.work, self.order = dict(env), work, order
        self.venv, self.tree = os.path.join(work, "venv"), os.path.join(work, "tree")
        self.name = project(order["wheel"])
        self.before = Installed(self.venv, self.name)

    def replaced(self) -> dict[str, Any] | None:
        """What was there and what is now, each "name version" or ""; `path`: found before it on the import path."""
        after = Installed(self.venv, self.name)
        now = self.before.other(after)
        if now is None:
            other = self.elsewhere()
            now = "%s in %s" % (self.before.title, other) if other else None
        if now is not None:
            return {"was": self.before.title, "now": now, "path": False}
        shadow = self.shadow()
        if shadow is None:
            return None
        return {"was": self.before.title, "now": "%s in %s" % (self.name.replace("_", "-"), shadow), "path": True}

    def elsewhere(self) -> str | None:
        """Another virtual environment that was made in this run and has the package too."""
        looked = 0
        for top in (self.tree, os.path.join(self.work, "home"), os.path.join(self.work, "tmp"), self.work):
            for folder in below(top):
                looked += 1
                own = os.path.realpath(folder) == os.path.realpath(self.venv)
                if looked > FOLDERS:
                    return None
                if own or not os.path.exists(os.path.join(folder, "pyvenv.cfg")):
                    continue
                if Installed(folder, self.name).info:
                    return folder
        return None

    def shadow(self) -> str | None:
        """A folder in which an import finds the package before the wheel's.

        One that PYTHONPATH names counts in any case. One in which something was only started, so that Python looks
        there first, when its package was compiled, and so imported.
        """
        texts = [text for text in spoken(self.order) if "PYTHONPATH" in text or "cd " in text]
        started = [self.tree, *(self.at(self.tree, name) for text in texts for name in words_after("cd", text))]
        named = [name for text in texts for value in values_of("PYTHONPATH", text) for name in value.split(":")]
        named += self.env.get("PYTHONPATH", "").split(":")
        on_path = [self.at(folder, name) for name in named if name for folder in started]
        tops = self.before.tops
        for folder in on_path:
            if any(found(folder, top) for top in tops) and not inside(folder, self.venv):
                return folder
        for folder in started:
            if any(found(folder, top) and imported(folder, top) for top in tops) and not inside(folder, self.venv):
                return folder
        return None

    def at(self, folder: str, name: str) -> str:
        for here in ("$PWD", "${PWD}", "$(pwd)", "`pwd`"):
            name = name.replace(here, folder)
        for home in ("$HOME", "${HOME}"):
            name = name.replace(home, self.env.get("HOME", folder))
        if name.startswith("~"):
            name = self.env.get("HOME", folder) + name[1:]
        return os.path.normpath(os.path.join(folder, name))


class Installed:
    """A distribution in a virtual environment, as its metadata names it; `info` is empty when it is not there."""

    def __init__(self, venv: str, name: str) -> None:
        self.site = self.info = self.title = self.origin = ""
        self.hashes: dict[str, str] = {}
        self.stats: dict[str, Stat | None] = {}
        self.hooks: dict[str, str] = {}
        for site in sites(venv):
            self.hooks.update(hooks(site))
        for site in sites(venv):
            for entry in sorted(entries(site)):
                if entry.endswith(INFO) and project(entry[: -len(INFO)]) == name:
                    self.read(site, entry)
                    return

    def read(self, site: str, entry: str) -> None:
        self.site, self.info = site, entry
        stem, _, version = entry[: -len(INFO)].partition("-")
        self.title = "%s %s" % (project(stem).replace("_", "-"), version)
        self.origin = text_of(os.path.join(site, entry, "direct_url.json"))
        for path, digest in record(text_of(os.path.join(site, entry, "RECORD"))):
            if own(path):
                self.hashes[path] = digest
                self.stats[path] = stat_of(os.path.join(site, path))

    @property
    def tops(self) -> list[str]:
        """The modules by which it is imported; those of its own name alone, when there are such."""
        names = {path.split("/")[0] for path in self.hashes}
        found = sorted({name[:-3] if name.endswith(".py") else name for name in names if "." not in name[:-3]})
        same = [name for name in found if name.lower() == project(self.info[: -len(INFO)])]
        return same or [name for name in found if name not in COMMON]

    def other(self, after: Installed) -> str | None:
        """What is there instead; None when it is the same."""
        if not after.info:
            return ""
        if after.info != self.info:
            return after.title
        if "editable" in after.origin and after.origin != self.origin:
            return "%s, editable from %s" % (after.title, url_of(after.origin))
        changed = self.changed(after)
        if not changed:
            fresh = self.fresh(after)
            return "%s with %s" % (after.title, ", ".join(fresh[:NAMES])) if fresh else None
        more = " and %d more" % (len(changed) - NAMES) if len(changed) > NAMES else ""
        return "%s with other files: %s%s" % (after.title, ", ".join(changed[:NAMES]), more)

    def fresh(self, after: Installed) -> list[str]:
        """What Python runs at each start now, and no distribution brought."""
        new = [name for name, text in sorted(after.hooks.items()) if self.hooks.get(name) != text]
        return [name for name in new if not brought(after.site, name)] if new else []

    def changed(self, after: Installed) -> list[str]:
        both = sorted({*self.hashes, *after.hashes})
        return [path for path in both if not self.same(after, path)]

    def same(self, after: Installed, path: str) -> bool:
        before, now = self.stats.get(path), after.stats.get(path)
        if before == now:
            return self.hashes.get(path) == after.hashes.get(path)
        if before is None or now is None or before[0] != now[0]:
            return False
        digest = self.hashes.get(path, "")
        if not digest:
            return before[:3] == now[:3]
        return digest == hashed(os.path.join(after.site, path), digest)


def own(path: str) -> bool:
    """Whether a line of RECORD is about the package itself: no metadata, no script, nothing that is compiled."""
    first = path.split("/")[0]
    compiled = path.endswith(".pyc") or "__pycache__" in path
    return not (compiled or first.endswith((INFO, ".pth")) or first in ("..", "") or path.startswith("/"))


def record(text: str) -> Iterator[tuple[str, str]]:
    """Paths and hashes, "sha256=…"."""
    for line in text.splitlines():
        parts = line.rsplit(",", 2)
        if len(parts) == 3:
            yield parts[0].strip('"').replace('""', '"'), parts[1]


def hashed(path: str, like: str) -> str:
    """In the form of RECORD, by the same algorithm as `like`."""
    import base64
    import hashlib

    name = like.partition("=")[0]
    try:
        digest = hashlib.new(name)
    except ValueError:
        return ""
    try:
        with opened(path) as file:
            for part in iter(lambda: file.read(1024 * 1024), b""):
                digest.update(part)
    except OSError:
        return ""
    return "%s=%s" % (name, base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode())


def stat_of(path: str) -> Stat | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    # An edit can give its file the old time, and not the old time of change.
    return (found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)


def opened(path: str) -> BinaryIO:
    """A plain file: a pipe in its place would never end. Errors: OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("%s is no plain file" % path)
    return os.fdopen(handle, "rb")


def text_of(path: str) -> str:
    try:
        with opened(path) as file:
            return file.read(TEXT).decode("utf-8", "replace")
    except OSError:
        return ""


def hooks(site: str) -> dict[str, str]:
    names = [name for name in entries(site) if name.endswith(".pth") or name in HOOKS]
    return {name: text_of(os.path.join(site, name)) for name in names}


def brought(site: str, name: str) -> bool:
    """Whether an installer put it there, as with setuptools or an editable install of something else."""
    infos = (entry for entry in entries(site) if entry.endswith(INFO))
    return any(name == path for info in infos for path, _ in record(text_of(os.path.join(site, info, "RECORD"))))


def url_of(direct_url: str) -> str:
    import json

    try:
        return str(json.loads(direct_url)["url"])[:500]
    except (ValueError, KeyError, TypeError):
        return "an unknown place"


def below(top: str) -> Iterator[str]:
    """The folder and those in it and in them."""
    yield top
    for name in entries(top):
        path = os.path.join(top, name)
        if os.path.isdir(path) and not os.path.islink(path):
            yield path
            yield from (os.path.join(path, inner) for inner in entries(path))


def inside(path: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(path), real]) == real


def found(folder: str, top: str) -> bool:
    """Whether an import looks no further: a folder without `__init__` gives way to a package behind it."""
    package = os.path.join(folder, top, "__init__.py")
    return os.path.isfile(package) or os.path.isfile(os.path.join(folder, top + ".py"))


def imported(folder: str, top: str) -> bool:
    of_package = entries(os.path.join(folder, top, "__pycache__"))
    of_module = entries(os.path.join(folder, "__pycache__"))
    return any(name.startswith("__init__.") for name in of_package) or any(
        name.startswith(top + ".") for name in of_module
    )


def spoken(order: dict[str, Any]) -> list[str]:
    """All that a shell runs in this run."""
    serve = order.get("serve") or {}
    return [text for text in (order.get("script"), serve.get("command"), order.get("check")) if text]


def words_after(command: str, text: str) -> list[str]:
    """The first arguments of a command, as far as they can be read without a shell."""
    import re

    return [unquoted(word) for word in re.findall(r"(?:^|[;&|(\s])%s\s+%s" % (command, WORD), text)]


def values_of(variable: str, text: str) -> list[str]:
    import re

    return [unquoted(word) for word in re.findall(r"\b%s=%s" % (variable, WORD), text)]


WORD = r"""("[^"\n]*"|'[^'\n]*'|[^\s;&|)]+)"""


def unquoted(word: str) -> str:
    return word[1:-1] if word[:1] in ("'", '"') else word
