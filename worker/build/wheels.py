"""What is taken for a wheel: validly named, of the right package, unpacking nowhere but where it should."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name, parse_wheel_filename

from worker.build.wheel_files import DAMAGED, raw
from worker.errors import fault_of

MEMBERS = 200_000
#: Of all members together, unpacked.
UNPACKED_BYTES = 16 * 1024**3
PIECE = 1024 * 1024


class NoWheel(Exception):
    """The commit does not build: what was left, and why that is no wheel."""


def take(folder: Path, into: Path, package: str | None = None) -> Path:
    """Copies the one wheel in `folder`, which a sandbox wrote, to `into`, which none can write.

    `package`: what it must be of. Errors: NoWheel.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise NoWheel("the build removed the folder that $FIRSTBAD_OUT names") from error
    try:
        names = sorted(name for name in os.listdir(handle) if name.endswith(".whl"))  # noqa: PTH208 (of a handle)
        if len(names) != 1:
            left = "no wheel" if not names else f"{len(names)} wheels ({', '.join(map(ascii, names[:5]))})"
            raise NoWheel(f"the build left {left} in $FIRSTBAD_OUT; exactly one is needed")
        check_name(names[0], package)
        _copy(handle, names[0], into / names[0])
    finally:
        os.close(handle)
    check(into / names[0])
    return into / names[0]


def check_name(name: str, package: str | None = None) -> None:
    """Errors: NoWheel."""
    try:
        found, *_ = parse_wheel_filename(name)
    except ValueError as error:
        raise NoWheel(f"{name!r} is no name of a wheel: {error}") from error
    if "/" in name or "\\" in name or "\0" in name:
        raise NoWheel(f"{name!r} is no name of a wheel: it has a sign of a path")
    if package is not None and found != canonicalize_name(package):
        raise NoWheel(f"the wheel is of {found}, not of {canonicalize_name(package)}")


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
    """Errors: NoWheel for what is no wheel, or would unpack outside its place or to more than it says."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            _check_members(wheel, archive.infolist())
            for member in archive.infolist():
                _check_content(archive, member)
    except DAMAGED as error:
        raise NoWheel(f"{wheel.name} is no zip file: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file
            raise fault_of(error, f"reading {wheel.name}") from error
        raise NoWheel(f"{wheel.name} is no zip file: {error}") from error


def _check_members(wheel: Path, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MEMBERS:
        raise NoWheel(f"{wheel.name} has {len(members)} members, more than {MEMBERS}")
    for member in members:
        _check_member(wheel.name, member)
    names = [member.filename for member in members]
    if not any(name.endswith(".dist-info/METADATA") and name.count("/") == 1 for name in names):
        raise NoWheel(f"{wheel.name} holds no *.dist-info/METADATA")
    if len(set(names)) != len(names):
        raise NoWheel(f"{wheel.name} holds the same member twice")
    unpacked = sum(member.file_size for member in members)
    if unpacked > UNPACKED_BYTES:
        raise NoWheel(f"{wheel.name} holds {unpacked} bytes, more than {UNPACKED_BYTES}")
    if sum(member.compress_size for member in members) > wheel.stat().st_size:
        raise NoWheel(f"{wheel.name} holds members that lie within each other")


def _check_member(wheel: str, member: zipfile.ZipInfo) -> None:
    name = member.filename
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in PurePosixPath(name).parts or ":" in name[:2]:
        raise NoWheel(f"{wheel} holds {name!r}, which leads outside of it")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise NoWheel(f"{wheel} holds the link {name!r}")


def _check_content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """What is unpacked is what the entry says, of which zipfile takes the length on trust. Errors: those of DAMAGED."""
    with archive.open(member) as content:  # compares the name with that before the bytes
        if member.compress_type != zipfile.ZIP_DEFLATED:
            while content.read(PIECE):
                pass
            return
    size = checksum = 0
    for piece in _unpacked(archive, member):
        size, checksum = size + len(piece), zlib.crc32(piece, checksum)
        if size > member.file_size:
            break
    if (size, checksum) != (member.file_size, member.CRC):
        raise zipfile.BadZipFile(f"{member.filename!r} is not what its entry says")


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    for packed in raw(archive, member):
        while packed and not unpacking.eof:
            yield unpacking.decompress(packed, PIECE)
            packed = unpacking.unconsumed_tail
    if not unpacking.eof:
        raise zipfile.BadZipFile(f"{member.filename!r} ends too early")
