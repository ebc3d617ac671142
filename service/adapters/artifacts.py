"""Implements ArtifactStore, for reading only, over fsspec: a folder, or an object store by its URL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from service.domain.errors import NotFound

PIECE_BYTES = 256 * 1024
_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


class Artifacts:
    """`root`: a folder's path or a URL that fsspec knows, such as s3://bucket/prefix."""

    def __init__(self, root: str) -> None:
        self._files, self._root = fsspec.core.url_to_fs(root)

    def read(self, path: str) -> Iterator[bytes]:
        """Opened at once, so that NotFound comes before the first piece is asked for."""
        if not _inside(path):
            raise _missing(path)
        place = f"{self._root.rstrip('/')}/{path}"
        if isinstance(self._files, LocalFileSystem) and not _below(Path(place), Path(self._root)):
            raise _missing(path)
        try:
            file = self._files.open(place, "rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _missing(path) from None
        return _pieces(file)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _inside(path: str) -> bool:
    parts = path.split("/")
    named = all(part not in ("", ".", "..") and len(part.encode("utf-8", "replace")) <= 255 for part in parts)
    return named and len(path) <= 2000 and not _NOT_IN_A_PATH.search(path)


def _below(place: Path, root: Path) -> bool:
    """A link that a run left behind must not lead out of the store."""
    return place.resolve().is_relative_to(root.resolve())


def _missing(path: str) -> NotFound:
    return NotFound(
        f"there is no artifact {path[:200]!r}",
        value=path,
        advice="it may have been removed by age; the probe's outcome still has its last lines",
    )
