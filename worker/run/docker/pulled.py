"""The images that this worker pulled, and when it used them last: what it brought here it may take away again."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from docker.client import DockerClient
from docker.errors import APIError, ImageNotFound

from worker.kept import Item
from worker.run.docker.engine import faults


@dataclass(frozen=True)
class Pulled:
    """A file for each, whose time is that of its last use. Without it an image is only kept for longer."""

    folder: Path

    def note(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file(name).write_text(name, encoding="utf-8")

    def use(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.utime(self._file(name))

    def _file(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode()).hexdigest()[:24]

    def items(self, client: DockerClient) -> Iterator[Item]:
        """Errors: NodeFault."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            with contextlib.suppress(OSError, UnicodeError):
                name, used_at = file.read_text(encoding="utf-8"), file.stat().st_mtime
                size, remove = partial(self._size, client, name), partial(self._remove, client, name, file)
                yield Item(f"image {name}", used_at, size, remove)

    @staticmethod
    def _size(client: DockerClient, name: str) -> int:
        """Layers that it shares with others count here too."""
        with faults(name):
            try:
                return int(client.images.get(name).attrs.get("Size", 0))
            except ImageNotFound:
                return 0

    @staticmethod
    def _remove(client: DockerClient, name: str, file: Path) -> bool:
        """By its name alone, and never against the engine's will: what has another name or a container stays."""
        with faults(name):
            try:
                client.images.remove(name)
            except ImageNotFound:
                pass
            except APIError as error:
                if error.status_code != 409:
                    raise
                return False
        file.unlink(missing_ok=True)
        return True
