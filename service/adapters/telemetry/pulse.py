"""How a control worker tells that it works, and not only that it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from service.domain.figures import Beat


@dataclass(frozen=True, eq=False)
class _Held:
    since: datetime
    slow: bool


class Pulse:
    """Notes when messages begin and end, in any thread."""

    def __init__(self, name: str, threads: int, sweep_s: float, now: Callable[[], datetime]) -> None:
        self.name, self._threads, self._sweep_s, self._now = name, threads, sweep_s, now
        self._lock = threading.Lock()
        self._held: set[_Held] = set()
        self._began = self._moved = now()
        self._swept: datetime | None = None

    @contextmanager
    def holding(self, *, slow: bool = False) -> Iterator[None]:
        """A message is in hand. `slow`: one that may take minutes."""
        held = _Held(self._now(), slow)
        with self._lock:
            self._held.add(held)
            self._moved = held.since
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(held)
                self._moved = self._now()

    def swept(self) -> None:
        with self._lock:
            self._swept = self._now()

    def beat(self) -> Beat:
        with self._lock:
            return Beat(
                name=self.name,
                at=self._now(),
                began_at=self._began,
                moved_at=self._moved,
                sweep_s=self._sweep_s,
                threads=self._threads,
                busy=len(self._held),
                preparing=sum(held.slow for held in self._held),
                oldest_at=min((held.since for held in self._held if not held.slow), default=None),
                swept_at=self._swept,
            )
