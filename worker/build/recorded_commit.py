"""What a wheel itself says about the commit that it was made of."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

_HEX = re.compile(r"g?([0-9a-f]{7,40})")
#: What setuptools-scm adds for a tree that was changed: a date, not a commit.
_DAY = re.compile(r"d?\d{8}")
_MEMBER = re.compile(r"[^/]+/(?:[^/]+/)?_?\w*(?:version|commit|revision|build_?info|git)\w*\.(?:py|json|txt)")
_ASSIGNED = re.compile(
    r"""(?:commit|revision|git|sha)\w{0,60}["']?\s{0,9}(?::[^=\n"']{0,200})?[=:]\s{0,99}(?:\w{1,60}\s{0,9}=\s{0,9}){0,9}"""
    r"""["']g?([0-9a-f]{7,40})["']""",
    re.IGNORECASE,
)
_MEMBER_BYTES = 256 * 1024
_METADATA_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Recorded:
    """`commits`: SHAs or their beginnings, with where each is said."""

    name: str
    version: Version
    commits: tuple[tuple[str, str], ...]


class Unreadable(Exception):
    """The wheel does not say what it is."""


def recorded(wheel: Path) -> Recorded:
    """Of a wheel that was checked. Errors: Unreadable."""
    with zipfile.ZipFile(wheel) as archive:
        name, version = _identity(archive)
        found = [(commit, f"its version {version}") for commit in commits_of(version)]
        found += [(commit, member) for member, text in _records(archive) for commit in _ASSIGNED.findall(text)]
    return Recorded(name, version, tuple((commit.lower(), where) for commit, where in found))


def _identity(archive: zipfile.ZipFile) -> tuple[str, Version]:
    metadata = [each for each in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each)]
    if len(metadata) != 1 or archive.getinfo(metadata[0]).file_size > _METADATA_BYTES:
        raise Unreadable("it holds not exactly one METADATA of a usual size")
    headers = HeaderParser().parsestr(archive.read(metadata[0]).decode("utf-8", "replace"))
    try:
        name, version = str(headers["Name"]), Version(str(headers["Version"]))
    except ValueError as error:
        raise Unreadable(f"its METADATA is of no version: {error}") from error
    folder = metadata[0].partition(".dist-info/")[0]
    if canonicalize_name(folder.rpartition("-")[0]) != canonicalize_name(name):
        raise Unreadable(f"its folder {folder}.dist-info is not of {name}")
    return name, version


def commits_of(version: Version) -> Iterator[str]:
    """Such as 1a2b3c4 of 0.1.dev5+g1a2b3c4."""
    for part in (version.local or "").split("."):
        found = _HEX.fullmatch(part)
        if found and not _DAY.fullmatch(part):
            yield found[1]


def _records(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    for member in archive.infolist():
        inner = ".dist-info/" not in member.filename and _MEMBER.fullmatch(member.filename)
        if inner and member.file_size <= _MEMBER_BYTES:
            yield member.filename, archive.read(member).decode("utf-8", "replace")
