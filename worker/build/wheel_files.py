"""A wheel's members, read one by one, and a wheel written after the pattern of another.

The `wheel` package writes each member anew, in an order, with times and a RECORD of its own, and `installer` only
reads. Here most members are copied as they lie there, compressed, which makes it quick: so the zip is written by hand.
"""

from __future__ import annotations

import copy
import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

from packaging.utils import parse_wheel_filename

from worker.build.impossible import CannotOverlay
from worker.build.trees import FILE_BYTES

#: What zipfile raises for a member whose bytes are not what its entry says.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, struct.error)
_PIECE = 1024 * 1024
_LOCAL_HEADER = 30
_ZIP64 = 1


@dataclass(frozen=True)
class WheelFile:
    """An open wheel. `distribution` and `version` as its file name spells them; `tags`: the rest of that name."""

    zip: zipfile.ZipFile
    distribution: str
    version: str
    tags: str
    _digests: dict[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def members(self) -> list[str]:
        return self.zip.namelist()

    @cached_property
    def info(self) -> str:
        """The *.dist-info folder. Errors: CannotOverlay."""
        found = {name.partition("/")[0] for name in self.members if name.partition("/")[0].endswith(".dist-info")}
        if found != {f"{self.distribution}-{self.version}.dist-info"}:
            raise CannotOverlay(f"{self.zip.filename} names its metadata otherwise than itself: {sorted(found)[:3]}")
        return found.pop()

    @property
    def data(self) -> str:
        return f"{self.distribution}-{self.version}.data"

    def size(self, member: str) -> int:
        return self.zip.getinfo(member).file_size

    def read(self, member: str) -> bytes:
        """Errors: CannotOverlay."""
        if self.size(member) > FILE_BYTES:
            raise CannotOverlay(f"{member} has {self.size(member)} bytes, more than is read into memory")
        try:
            return self.zip.read(member)
        except DAMAGED as error:
            raise CannotOverlay(f"{member} of the base wheel cannot be read: {error}") from error

    def sha256(self, member: str) -> str:
        if member not in self._digests:
            self._digests[member] = hashlib.sha256(self.read(member)).hexdigest()
        return self._digests[member]


def opened(path: Path) -> WheelFile:
    """A wheel that was checked. Errors: CannotOverlay."""
    parse_wheel_filename(path.name)
    distribution, version, tags = path.name.removesuffix(".whl").split("-", 2)
    try:
        return WheelFile(zipfile.ZipFile(path), distribution, version, tags)
    except zipfile.BadZipFile as error:
        raise CannotOverlay(f"the base wheel cannot be read: {error}") from error


@dataclass(frozen=True)
class Member:
    """One of the new wheel: that of the base when `content` is None, else new content. `like`: its entry's pattern."""

    name: str
    like: str
    content: bytes | None = None
    executable: bool | None = None


def write(path: Path, base: WheelFile, members: Iterable[Member]) -> None:
    with zipfile.ZipFile(path, "w") as out:
        for member in members:
            entry = copy.copy(base.zip.getinfo(member.like))
            entry.filename, entry.orig_filename = member.name, member.name
            if member.executable is not None:
                entry.external_attr = _with_executable(entry.external_attr, member.executable)
            if member.content is None:
                _copy(base.zip, out, entry)
            else:
                entry.flag_bits, entry.extra = 0, b""
                out.writestr(entry, member.content)


def _with_executable(attributes: int, executable: bool) -> int:
    """Whoever may read the file may run it, or nobody may."""
    mode = attributes >> 16
    mode = mode | ((mode & 0o444) >> 2) if executable else mode & ~0o111
    return (mode << 16) | (attributes & 0xFFFF)


def _copy(base: zipfile.ZipFile, out: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Copies the compressed bytes. `entry`: the base's, still with the place that it has there."""
    target = cast(BinaryIO, out.fp)
    pieces = raw(base, copy.copy(entry))
    target.seek(out.start_dir)
    entry.header_offset = out.start_dir
    entry.flag_bits &= ~0x08  # the sizes stand in the header now, not behind the bytes
    entry.extra = b"" if _has_zip64(entry.extra) else entry.extra
    target.write(entry.FileHeader())
    for piece in pieces:
        target.write(piece)
    out.filelist.append(entry)
    out.NameToInfo[entry.filename] = entry
    out.start_dir = target.tell()


def raw(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The member's bytes as they lie in the file. Errors: zipfile.BadZipFile."""
    source = cast(BinaryIO, archive.fp)
    source.seek(entry.header_offset)
    header = source.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or not header.startswith(b"PK\x03\x04"):
        raise zipfile.BadZipFile(f"{entry.filename!r} does not begin where it should")
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
    at = entry.header_offset + _LOCAL_HEADER + name_bytes + extra_bytes
    left = entry.compress_size
    while left > 0:
        source.seek(at)
        piece = source.read(min(left, _PIECE))
        if not piece:
            raise zipfile.BadZipFile(f"{entry.filename!r} ends too early")
        yield piece
        at, left = at + len(piece), left - len(piece)


def _has_zip64(extra: bytes) -> bool:
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == _ZIP64:
            return True
        extra = extra[4 + size :]
    return False
