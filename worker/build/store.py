"""The artifact store: wheels and logs, in a folder or wherever fsspec reaches. Puts are atomic, reads are checked."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import tempfile
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

from worker.build.source import redacted
from worker.errors import NodeFault, fault_of

#: Where a put shows only when all of it is there, and a move is a copy. Elsewhere a file is moved to its name.
OBJECTS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
#: With the client's own values a store that is away would be found out only after most of a minute.
OPTIONS = {
    "skip_instance_cache": True,
    "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}},
}
#: The file by which the store is tried; always the same, so that no more than one is ever left.
CHECK = "tmp/check"
FULL = (errno.ENOSPC, errno.EDQUOT)
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_WITH_PASSWORD = re.compile(r"[a-z0-9]+://[^/]*@")


@dataclass(frozen=True)
class Store:
    """`url`: a folder, or an fsspec URL such as s3://bucket/prefix, whose keys are in the usual variables."""

    url: str

    @cached_property
    def _target(self) -> tuple[Any, str]:
        """Errors: NodeFault, when there can be no such store."""
        options = OPTIONS if self._protocol in ("s3", "s3a") else {}
        if self._objects and _WITH_PASSWORD.match(self.url):
            message = f"the store {redacted(self.url)} is named with a password"
            raise NodeFault("store", message, "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.")
        try:
            return url_to_fs(self.url, **options)  # type: ignore[no-any-return]
        except ImportError as error:
            advice = "Install firstbad[s3]." if self._protocol == "s3" else "Install what it asks for."
            raise NodeFault("store", f"the store {redacted(self.url)} cannot be used: {error}", advice) from error
        except ValueError as error:
            message = f"the store {redacted(self.url)} cannot be used: {error}"
            raise NodeFault("store", message, "Set FIRSTBAD_STORE_URL to a folder or to s3://bucket/prefix.") from error

    @property
    def _protocol(self) -> str:
        return self.url.partition("://")[0] if "://" in self.url else "file"

    @property
    def _objects(self) -> bool:
        return self._protocol in OBJECTS

    @property
    def local(self) -> Path | None:
        """The folder, when the store is one."""
        files, root = self._target
        protocols = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
        return Path(root) if "file" in protocols else None

    def check(self) -> None:
        """Whether it can be written now, by a file that is put and removed. Errors: NodeFault."""
        with tempfile.NamedTemporaryFile() as file:
            self.put(Path(file.name), CHECK)
        files, root = self._target
        # Whoever may put serves; and another worker may have tried at the same time.
        with contextlib.suppress(*self._errors):
            files.rm_file(f"{root}/{CHECK}")

    def put(self, file: Path, path: str) -> str:
        """Stores the file under this path, whole or not at all; its SHA-256. Errors: NodeFault."""
        files, root = self._target
        target = f"{root}/{_checked(path)}"
        digest = _sha256(file)
        try:
            if self._objects:
                files.put_file(str(file), target)
            else:
                _put_aside(files, file, f"{root}/tmp", target)
        except self._errors as error:
            what = "nothing can be stored" if path == CHECK else f"{path} could not be stored"
            raise self._fault(error, what) from error
        return digest

    def get(self, path: str, into: Path, sha256: str | None) -> None:
        """Brings a file here, whole or not at all. Errors: NodeFault when it is not there, or is not what it was."""
        try:
            self._get(path, into)
            digest = _sha256(into)
            if sha256 is not None and digest != sha256:
                message = f"damaged wheel: {path} has the SHA-256 {digest}, but {sha256} was stored"
                raise NodeFault("damaged-wheel", message, f"It has to be built again; check {redacted(self.url)}.")
        except NodeFault:
            with contextlib.suppress(OSError):
                into.unlink(missing_ok=True)
            raise

    def _get(self, path: str, into: Path) -> None:
        files, root = self._target
        try:
            files.get_file(f"{root}/{_checked(path)}", str(into))
        except self._errors as error:
            if isinstance(error, FileNotFoundError) and not _no_bucket(error):
                message = f"{path} is not in the store {redacted(self.url)}"
                raise NodeFault("missing-wheel", message, "Build it again.") from error
            if isinstance(error, OSError) and error.errno in FULL:
                raise fault_of(error, f"reading {path} from the store") from error
            raise self._fault(error, f"{path} could not be read") from error

    @cached_property
    def _errors(self) -> tuple[type[Exception], ...]:
        """What such a store's client raises when the store fails."""
        if self._protocol not in ("s3", "s3a"):
            return (OSError, ValueError)
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError

        return (OSError, ValueError, BotoCoreError, ClientError)

    def _fault(self, error: Exception, what: str) -> NodeFault:
        number = error.errno if isinstance(error, OSError) else None
        message = redacted(f"{what}: the store {self.url} says: {error}")[:2000]
        if number in FULL:
            return NodeFault("disk-full", message, "Free space in the store.")
        return NodeFault("store", message, self._advice(error, number))

    def _advice(self, error: Exception, number: int | None) -> str:
        if not self._objects:
            closed = "Let the worker's user write there, and mount it writable."
            return closed if number in CLOSED else "Look at the store's disk, and whether it is mounted."
        if _no_bucket(error):
            return "Create the bucket, or correct FIRSTBAD_STORE_URL."
        if isinstance(error, PermissionError) or number in CLOSED or "redentials" in str(error):
            return "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and whether they may read and write there."
        return "See whether the store is up, and whether AWS_ENDPOINT_URL is right."


def _put_aside(files: Any, file: Path, folder: str, target: str) -> None:
    passing = f"{folder}/{uuid.uuid4().hex}"
    files.makedirs(folder, exist_ok=True)
    files.makedirs(target.rpartition("/")[0], exist_ok=True)
    try:
        files.put_file(str(file), passing)
        files.mv(passing, target)
    except BaseException:
        with contextlib.suppress(OSError):
            files.rm(passing)
        raise


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise fault_of(error, f"reading {file}") from error


def _no_bucket(error: Exception) -> bool:
    """Told apart from a missing file only by what the client was answered."""
    response = getattr(error.__cause__, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "NoSuchBucket")


def _checked(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise NodeFault("order", f"{path!r} is no path in the store", "")
    return path
