"""Implements ArtifactStore over fsspec: a folder, or an object store by its URL. Only workers write into it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from service.adapters import compressed
from service.application.ports import StoreBusy, Stored
from service.domain.errors import NotFound

PIECE_BYTES = 256 * 1024
#: Of an object store, so much is asked for at once; its client would take 50 MB.
BLOCK_BYTES = 4 * 1024 * 1024
#: No log has more: orders cap them at half of it, and some lines of ours come on top.
LOG_BYTES = 128 * 1024 * 1024
#: A reader shall not wait for most of a minute for a store that is away.
OPTIONS = {
    "skip_instance_cache": True,
    "config_kwargs": {"connect_timeout": 10, "read_timeout": 30, "retries": {"max_attempts": 2}},
}
_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")


class Artifacts:
    """`root`: a folder's path or a URL that fsspec knows, such as s3://bucket/prefix.

    Errors: ValueError, when there can be no such store.
    """

    def __init__(self, root: str) -> None:
        self._url = root
        self._s3 = root.startswith(("s3://", "s3a://"))
        if self._s3 and "@" in root.removeprefix("s3://").partition("/")[0]:
            raise ValueError(f"{_redacted(root)} is named with a password: set AWS_ACCESS_KEY_ID and the like")
        try:
            self._files, self._root = fsspec.core.url_to_fs(root, **(OPTIONS if self._s3 else {}))
        except ImportError as error:
            advice = "install firstbad[s3]" if self._s3 else "install what it asks for"
            raise ValueError(f"{_redacted(root)} cannot be used: {error}; {advice}") from error
        except ValueError as error:
            advice = "name a folder, or s3://bucket/prefix"
            raise ValueError(f"{_redacted(root)} cannot be used: {error}; {advice}") from error

    def read(self, path: str) -> Iterator[bytes]:
        """Opened at once, so that NotFound comes before the first piece is asked for. Errors: NotFound, StoreBusy.

        What is compressed comes as it was before; where that turns out to be damaged, NotFound comes later.
        """
        place = self._place(path)
        with self._reached(path):
            if self._s3 and self._files.info(place)["type"] != "file":
                raise _missing(path)
            file = self._files.open(place, "rb", block_size=BLOCK_BYTES)
        return self._pieces(path, file)

    def _pieces(self, path: str, file: IO[bytes]) -> Iterator[bytes]:
        with self._reached(path), file:
            if path.endswith(compressed.ENDING):
                yield from compressed.plain(file, PIECE_BYTES, LOG_BYTES)
                return
            while piece := file.read(PIECE_BYTES):
                yield piece

    def remove(self, path: str) -> None:
        """Does nothing when it is not there. Errors: StoreBusy."""
        try:
            place = self._place(path, itself=True)
            with self._reached(path):
                self._files.rm_file(place)
        except NotFound:
            return

    def stored(self, folder: str) -> Iterator[Stored]:
        """All files below it, in no order; none where there is no such folder. Errors: StoreBusy."""
        place = self._place(folder)
        root = f"{self._root.rstrip('/')}/"
        try:
            with self._reached(folder):
                found = self._files.find(place, detail=True)
        except NotFound:
            return
        for name, told in found.items():
            if told["type"] == "file" and not told.get("islink") and name.startswith(root):
                yield Stored(name.removeprefix(root), int(told["size"]), _written_at(told))

    def _place(self, path: str, *, itself: bool = False) -> str:
        """`itself`: of a link, not of what it leads to. Errors: NotFound, for what is no path in the store."""
        if not _inside(path):
            raise _missing(path)
        place = f"{self._root.rstrip('/')}/{path}"
        if isinstance(self._files, LocalFileSystem):
            asked = Path(place).parent if itself else Path(place)
            if not asked.resolve().is_relative_to(Path(self._root).resolve()):
                # A link that a run left behind must not lead out of the store.
                raise _missing(path)
        return place

    @contextmanager
    def _reached(self, path: str) -> Iterator[None]:
        """Turns what the store's client raises into what readers know. Errors: NotFound, StoreBusy."""
        try:
            yield
        except compressed.Damaged as error:
            raise _damaged(path, error) from error
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            if _no_bucket(error):
                raise self._busy(error) from error
            raise _missing(path) from None
        except self._errors as error:
            raise self._busy(error) from error

    @cached_property
    def _errors(self) -> tuple[type[Exception], ...]:
        if not self._s3:
            return (OSError,)
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError

        return (OSError, ValueError, BotoCoreError, ClientError)

    def _busy(self, error: Exception) -> StoreBusy:
        return StoreBusy(_redacted(f"the artifact store {self._url} cannot be used now: {error}")[:500])


def _written_at(told: Mapping[str, Any]) -> datetime:
    at = told.get("LastModified", told.get("mtime"))
    return at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(float(at or 0), UTC)


def _inside(path: str) -> bool:
    parts = path.split("/")
    named = all(part not in ("", ".", "..") and len(part.encode("utf-8", "replace")) <= 255 for part in parts)
    return named and len(path) <= 2000 and not _NOT_IN_A_PATH.search(path)


def _no_bucket(error: Exception) -> bool:
    response = getattr(error.__cause__, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "NoSuchBucket")


def _redacted(text: str) -> str:
    return _CREDENTIALS.sub(r"\1", text)


def _damaged(path: str, why: compressed.Damaged) -> NotFound:
    return NotFound(
        f"the artifact {path[:200]!r} is damaged: {why}"[:500],
        value=path,
        advice="look at the store's disk; the probe's outcome still has its last lines",
    )


def _missing(path: str) -> NotFound:
    return NotFound(
        f"there is no artifact {path[:200]!r}",
        value=path,
        advice="it may have been removed by age; the probe's outcome still has its last lines",
    )
