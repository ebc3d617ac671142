"""What a build must leave: exactly one wheel, validly named, whose members unpack nowhere but where they should."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from worker.errors import fault_of

MEMBERS = 200_000


class NoWheel(Exception):
    """The commit does not build: what was left, and why that is no wheel."""


def take(folder: Path, into: Path) -> Path:
    """Copies the one wheel in `folder`, which a sandbox wrote, to `into`, which none can write. Errors: NoWheel."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise NoWheel("the build removed the folder that $FIRSTBAD_OUT names") from error
    try:
        names = sorted(name for name in os.listdir(handle) if name.endswith(".whl"))  # noqa: PTH208 (of a handle)
        if len(names) != 1:
            left = "no wheel" if not names else f"{len(names)} wheels ({', '.join(map(ascii, names[:5]))})"
            raise NoWheel(f"the build left {left} in $FIRSTBAD_OUT; exactly one is needed")
        check_name(names[0])
        _copy(handle, names[0], into / names[0])
    finally:
        os.close(handle)
    check(into / names[0])
    return into / names[0]


def check_name(name: str) -> None:
    """Errors: NoWheel."""
    try:
        parse_wheel_filename(name)
    except InvalidWheelFilename as error:
        raise NoWheel(f"{name!r} is no name of a wheel: {error}") from error


def _copy(folder: int, name: str, into: Path) -> None:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise NoWheel(f"{name} is no plain file") from error
    with os.fdopen(handle, "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise NoWheel(f"{name} is no plain file")
        try:
            with into.open("wb") as target:
                while piece := source.read(1024 * 1024):
                    target.write(piece)
        except OSError as error:
            raise fault_of(error, f"copying {name}") from error


def check(wheel: Path) -> None:
    """Errors: NoWheel for what is no wheel, or would unpack outside its place."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError) as error:
        raise NoWheel(f"{wheel.name} is no zip file: {error}") from error
    if len(members) > MEMBERS:
        raise NoWheel(f"{wheel.name} has {len(members)} members, more than {MEMBERS}")
    for member in members:
        _check_member(wheel.name, member)
    names = [member.filename for member in members]
    if not any(name.endswith(".dist-info/METADATA") and name.count("/") == 1 for name in names):
        raise NoWheel(f"{wheel.name} holds no *.dist-info/METADATA")
    if len(set(names)) != len(names):
        raise NoWheel(f"{wheel.name} holds the same member twice")


def _check_member(wheel: str, member: zipfile.ZipInfo) -> None:
    name = member.filename
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in PurePosixPath(name).parts or ":" in name[:2]:
        raise NoWheel(f"{wheel} holds {name!r}, which leads outside of it")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise NoWheel(f"{wheel} holds the link {name!r}")
