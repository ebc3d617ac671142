"""The artifact store: wheels and logs, in a folder or wherever fsspec reaches. Puts are atomic, reads are checked."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

from worker.errors import NodeFault, fault_of

_PIECE = 1024 * 1024


@dataclass(frozen=True)
class Store:
    url: str

    @cached_property
    def _target(self) -> tuple[Any, str]:
        return url_to_fs(self.url)  # type: ignore[no-any-return]

    @property
    def local(self) -> Path | None:
        """The folder, when the store is one."""
        files, root = self._target
        protocols = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
        return Path(root) if "file" in protocols else None

    def put(self, file: Path, path: str) -> str:
        """Stores the file under this path, whole or not at all; its SHA-256. Errors: NodeFault."""
        files, root = self._target
        target, passing = f"{root}/{_checked(path)}", f"{root}/tmp/{uuid.uuid4().hex}"
        try:
            files.makedirs(f"{root}/tmp", exist_ok=True)
            files.makedirs(target.rpartition("/")[0], exist_ok=True)
            digest = self._copy(file.open("rb"), files.open(passing, "wb"))
            files.mv(passing, target)
        except OSError as error:
            if files.exists(passing):
                files.rm(passing)
            raise fault_of(error, f"storing {path}") from error
        return digest

    def get(self, path: str, into: Path, sha256: str | None) -> None:
        """Brings a file here. Errors: NodeFault when it is not there, or is not what it was."""
        files, root = self._target
        try:
            digest = self._copy(files.open(f"{root}/{_checked(path)}", "rb"), into.open("wb"))
        except FileNotFoundError as error:
            raise NodeFault("missing-wheel", f"{path} is not in the store", "Build it again.") from error
        except OSError as error:
            raise fault_of(error, f"reading {path} from the store") from error
        if sha256 is not None and digest != sha256:
            message = f"damaged wheel: {path} has the SHA-256 {digest}, but {sha256} was stored"
            raise NodeFault("damaged-wheel", message, "It has to be built again; check the store's disk.")

    @staticmethod
    def _copy(source: Any, target: Any) -> str:
        digest = hashlib.sha256()
        with source, target:
            while piece := source.read(_PIECE):
                digest.update(piece)
                target.write(piece)
        return digest.hexdigest()


def _checked(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise NodeFault("order", f"{path!r} is no path in the store", "")
    return path
