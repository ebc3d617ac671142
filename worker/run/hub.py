"""Which models the node's folder holds, in the layout of the Hugging Face hub's cache; cheap to ask again and again."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"
#: As the hub names them. A part never holds two hyphens, which part them in the names of folders.
NAME = re.compile(rf"(?:{_PART}/)?{_PART}")
PREFIX = "models--"
#: More would be no folder of models, but a mistake, and too much for a heartbeat.
MOST = 2000


class Hub:
    """`folder`: what runs get as HF_HOME, so that models lie in its `hub`; or such a `hub` itself.

    A model counts when a snapshot of it is there: its folder alone may be what a download broke off has left. Only a
    folder of snapshots that has changed is looked into.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, bool]] = {}

    def models(self) -> tuple[str, ...]:
        """By name, as in "Qwen/Qwen3-0.6B"; none where the folder cannot be read, which a run would be told of."""
        found: dict[str, tuple[int, bool]] = {}
        for place in (self._folder / "hub", self._folder) if self._folder is not None else ():
            with contextlib.suppress(OSError), os.scandir(place) as entries:
                for entry in entries:
                    name = named(entry.name)
                    if name is not None and len(found) < MOST:
                        found[name] = self._look(name, Path(entry.path, "snapshots"))
        self._seen = found
        return tuple(sorted(name for name, (_, whole) in found.items() if whole))

    def _look(self, name: str, snapshots: Path) -> tuple[int, bool]:
        try:
            changed = snapshots.stat().st_mtime_ns
            before = self._seen.get(name)
            if before is not None and before[0] == changed:
                return before
            with os.scandir(snapshots) as entries:
                return changed, any(entry.is_dir() for entry in entries)
        except OSError:
            return 0, False


def named(folder: str) -> str | None:
    """The model whose folder this is; None for any other folder."""
    if not folder.startswith(PREFIX):
        return None
    name = folder.removeprefix(PREFIX).replace("--", "/")
    return name if NAME.fullmatch(name) else None
