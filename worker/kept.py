"""What a node keeps since it may serve again, and could be had again: things that may go, the longest unused first."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: Bytes of a block, as the kernel counts what a file takes.
BLOCK = 512


@dataclass(frozen=True)
class Item:
    """`place`: by which it is told from others. `used_at`: seconds of the epoch. `size`: bytes, which may take a while.

    `remove`: whether it is gone; not when somebody uses it.
    """

    place: str
    used_at: float
    size: Callable[[], int]
    remove: Callable[[], bool]


def size_of(folder: Path) -> int:
    """Bytes on the disk; files that have several names count once. What vanishes meanwhile counts nothing."""
    total, waiting, seen = 0, [folder], set[tuple[int, int]]()
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (found.st_dev, found.st_ino) in seen:
                            continue
                        seen.add((found.st_dev, found.st_ino))
                    total += found.st_blocks * BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
    return total
