"""A commit's files as `git archive` wrote them: an index of the tar, which is never unpacked."""

from __future__ import annotations

import hashlib
import posixpath
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from worker.build.impossible import CannotOverlay

#: A larger file is not read whole.
FILE_BYTES = 256 * 1024 * 1024
_ENTRIES = 500_000
_PIECE = 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """`offset`: of the content within the tar."""

    offset: int
    size: int
    sha256: str
    executable: bool


@dataclass(frozen=True)
class Tree:
    """`files`: by path; where a link leads to a file or a folder of the tree, the files that it shows too."""

    tar: Path
    files: Mapping[str, Entry]

    def read(self, path: str) -> bytes:
        entry = self.files[path]
        if entry.size > FILE_BYTES:
            raise CannotOverlay(f"{path} has {entry.size} bytes, more than is read into memory")
        with self.tar.open("rb") as file:
            file.seek(entry.offset)
            return file.read(entry.size)

    def sha256(self, path: str) -> str | None:
        entry = self.files.get(path)
        return entry.sha256 if entry else None

    @cached_property
    def by_name(self) -> Mapping[str, list[str]]:
        """The paths by the last part of their name."""
        found = defaultdict(list)
        for path in self.files:
            found[path.rpartition("/")[2]].append(path)
        return found

    @cached_property
    def by_content(self) -> Mapping[str, list[str]]:
        found = defaultdict(list)
        for path, entry in self.files.items():
            found[entry.sha256].append(path)
        return found

    @cached_property
    def sizes(self) -> frozenset[int]:
        return frozenset(entry.size for entry in self.files.values())

    @cached_property
    def by_kind(self) -> Mapping[str, list[str]]:
        found = defaultdict(list)
        for path in self.files:
            found[kind(path)].append(path)
        return found


def kind(path: str) -> str:
    """The suffix, which says what build backends take a file for; the name where there is none."""
    pure = PurePosixPath(path)
    return pure.suffix or pure.name


def parents(path: str) -> Iterator[str]:
    """The folders that hold it, the nearest first; "" is the tree itself."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def read_tree(tar: Path) -> Tree:
    """Errors: CannotOverlay."""
    files: dict[str, Entry] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(tar, "r:") as archive, tar.open("rb") as raw:
            for count, member in enumerate(archive):
                if count > _ENTRIES:
                    raise CannotOverlay(f"the tree has more than {_ENTRIES} entries")
                if member.isreg():
                    digest = _digest(raw, member.offset_data, member.size)
                    files[member.name] = Entry(member.offset_data, member.size, digest, bool(member.mode & 0o100))
                elif member.issym():
                    links[member.name] = member.linkname
    except tarfile.TarError as error:
        raise CannotOverlay(f"the tree cannot be read: {error}") from error
    return Tree(tar, {**files, **_shown_by(links, files)})


def _digest(raw: BinaryIO, offset: int, size: int) -> str:
    digest = hashlib.sha256()
    raw.seek(offset)
    while size > 0:
        piece = raw.read(min(size, _PIECE))
        if not piece:
            break
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def _shown_by(links: Mapping[str, str], files: Mapping[str, Entry]) -> dict[str, Entry]:
    """Files that are seen through links. Links through links, or out of the tree, show none."""
    shown: dict[str, Entry] = {}
    for link, leads_to in links.items():
        target = posixpath.normpath(posixpath.join(posixpath.dirname(link), leads_to))
        if target in files:
            shown[link] = files[target]
        elif not (target.startswith("..") or target == "." or below(f"{link}/", target)):
            inside = ((path, entry) for path, entry in files.items() if below(path, target))
            shown.update({link + path[len(target) :]: entry for path, entry in inside})
        if len(shown) > _ENTRIES:
            raise CannotOverlay(f"links show more than {_ENTRIES} files of the tree")
    return shown
