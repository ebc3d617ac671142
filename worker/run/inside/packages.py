# ruff: noqa: PTH101, PTH110, PTH112, PTH118, PTH119, PTH120, PTH123, PTH208, UP031 (see __init__)
"""What is installed where, read from the names of folders: to start a Python for it would take longer."""

from __future__ import annotations

import os
import sys

#: More than these many are not told.
MOST = 2000
#: Of a script its first lines name its Python, and they are looked for within this many bytes.
FIRST = 1024
INFO = (".dist-info", ".egg-info")


def project(wheel: str) -> str:
    """Its name, as the name of the wheel's file tells it and as folders with its metadata can be compared to it."""
    name = os.path.basename(wheel).split("-")[0].lower().replace(".", "_")
    return "_".join(part for part in name.split("_") if part)


def sites(venv: str) -> list[str]:
    """The folders of its packages: one, but for some that keep compiled ones apart."""
    library = os.path.join(venv, "lib")
    found = [os.path.join(library, name, "site-packages") for name in sorted(entries(library))]
    return [path for path in found if os.path.isdir(path)]


def entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def holds(venv: str, name: str) -> bool:
    """Whether the project was put into this virtual environment itself."""
    found = (entry for site in sites(venv) for entry in entries(site))
    return any(entry.endswith(".dist-info") and project(entry[: -len(".dist-info")]) == name for entry in found)


def of_venv(python: str) -> list[str]:
    """The virtual environment that this Python is of, if it is."""
    folder = os.path.dirname(os.path.dirname(python))
    return [folder] if os.path.exists(os.path.join(folder, "pyvenv.cfg")) else []


def of_base(python: str) -> list[str]:
    """The folders of the packages of the Python that runs this. None when `python`, the one to tell of, is another."""
    if os.path.realpath(python) != os.path.realpath(sys.executable):
        return []
    import site

    return site.getsitepackages()


def visible(folders: list[str]) -> dict[str, str]:
    """Versions by distribution; of the same one in two folders the first counts, as it does for Python."""
    found: dict[str, str] = {}
    for folder in folders:
        for entry in sorted(entries(folder)):
            stem, dot, kind = entry.rpartition(".")
            if dot + kind not in INFO or not plain(entry) or len(found) >= MOST:
                continue
            name, _, rest = stem.partition("-")
            version = rest.partition("-py")[0]
            name = project(name).replace("_", "-")
            if name and version:
                found.setdefault(name, version)
    return found


def plain(name: str) -> bool:
    return len(name) < 200 and name.isascii() and all(sign.isalnum() or sign in "._+!-" for sign in name)


def join(venv: str, other: str) -> None:
    """Lets the virtual environment see another's packages after its own, and gives it the scripts that it lacks."""
    for site in sites(venv):
        lines = ["import site; site.addsitedir(%r)\n" % path for path in sites(other)]
        with open(os.path.join(site, "_firstbad.pth"), "a", encoding="utf-8") as file:
            file.writelines(lines)
    have = set(entries(os.path.join(venv, "bin")))
    for name in entries(os.path.join(other, "bin")):
        if name not in have:
            take(venv, other, name)


def take(venv: str, other: str, name: str) -> None:
    """A script that names the other's Python then names this one's, so that it sees what is tested."""
    source, target = os.path.join(other, "bin", name), os.path.join(venv, "bin", name)
    try:
        with open(source, "rb") as file:
            text = file.read(FIRST)
            old = os.fsencode(os.path.join(other, "bin", "python"))
            first = b"\n".join(text.split(b"\n", 2)[:2])
            if not text.startswith(b"#!") or old not in first:
                return
            text += file.read()
    except OSError:
        return
    new = os.fsencode(os.path.join(venv, "bin", "python"))
    write(target, first.replace(old, new) + text[len(first) :])


def own_pip(venv: str) -> None:
    """So that `pip` installs there too, and not beside it, where it is not looked for first."""
    for name in ("pip", "pip3"):
        path = os.path.join(venv, "bin", name)
        if not os.path.exists(path):
            write(path, b'#!/bin/sh\nexec "%s/bin/python" -m pip "$@"\n' % os.fsencode(venv))


def write(path: str, text: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
    try:
        while text:
            text = text[os.write(handle, text) :]
    finally:
        os.close(handle)
