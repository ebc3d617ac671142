"""How many jobs of this worker run at the same time: they disturb what is measured."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Beside:
    """`most`: of other jobs during this one, at the same time."""

    most: int = 0


@dataclass
class Running:
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _now: list[Beside] = field(default_factory=list, repr=False)

    @contextlib.contextmanager
    def one(self) -> Iterator[Beside]:
        mine = Beside()
        with self._lock:
            self._now.append(mine)
            for each in self._now:
                each.most = max(each.most, len(self._now) - 1)
        try:
            yield mine
        finally:
            with self._lock:
                # By itself: two that saw as many are equal.
                self._now = [each for each in self._now if each is not mine]
