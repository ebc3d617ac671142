"""Caches of installers and compilers: folders that jobs of the same kind write into, one after the other or at once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from worker.errors import fault_of
from worker.kept import Item, size_of


@dataclass(frozen=True)
class Caches:
    """`throw`: takes a folder away. Only jobs of this worker use them: another one has another work_dir."""

    folder: Path
    throw: Callable[[Path], None]
    _used: Counter[Path] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def path(self, name: str) -> Path:
        return self.folder / name

    @contextlib.contextmanager
    def using(self, path: Path | None, uid: int | None) -> Iterator[None]:
        """The folder is there and stays meanwhile. `uid`: who writes there, where that is another user.

        Errors: NodeFault.
        """
        if path is None:
            yield
            return
        with self._lock:
            self._used[path] += 1
        try:
            self._make(path, uid)
            yield
        finally:
            with contextlib.suppress(OSError):
                os.utime(path)
            with self._lock:
                self._used[path] -= 1

    @staticmethod
    def _make(path: Path, uid: int | None) -> None:
        try:
            if not path.exists():
                path.mkdir(parents=True, exist_ok=True)
                if uid is not None:
                    os.chown(path, uid, uid)
            os.utime(path)
        except OSError as error:
            raise fault_of(error, f"making {path}") from error

    def items(self) -> Iterator[Item]:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            with contextlib.suppress(OSError):
                yield Item(str(path), path.stat().st_mtime, partial(size_of, path), partial(self._remove, path))

    def _remove(self, path: Path) -> bool:
        with self._lock:
            if self._used[path]:
                return False
            # Whoever comes now makes another one.
            self.throw(path)
        return True
