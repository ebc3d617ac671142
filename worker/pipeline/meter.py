"""What a probe cost in GPU seconds, counted also when it came to nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass
class Meter:
    """Cards times seconds: `leased_s`, that they were held; `used_s`, of these, while a run was under way. `on_lease`
    is called once they are.

    A run that is taken up again was begun by another process: the clocks of both are those of the node, by which it is
    told how long that was ago.
    """

    leased_s: float = 0.0
    used_s: float = 0.0
    on_lease: Callable[[], None] = lambda: None
    _cards: int = 0

    @contextlib.contextmanager
    def leasing(self, cards: int, since: float | None = None) -> Iterator[None]:
        """`since`: seconds of the epoch, when the lease began; None: now."""
        self._cards, began = cards, _ago(since)
        try:
            if cards and since is None:
                self.on_lease()
            yield
        finally:
            self.leased_s = cards * (time.monotonic() - began)
            self.used_s = min(self.used_s, self.leased_s)

    @contextlib.contextmanager
    def running(self, since: float | None = None) -> Iterator[None]:
        began = _ago(since)
        try:
            yield
        finally:
            self.used_s += self._cards * (time.monotonic() - began)


def _ago(since: float | None) -> float:
    """By the clock that never goes back."""
    return time.monotonic() - (max(0.0, time.time() - since) if since else 0.0)
