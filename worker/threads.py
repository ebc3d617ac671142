"""Threads that work for an order: what its log lines carry, theirs do."""

from __future__ import annotations

import contextvars
import threading


class Bound(threading.Thread):
    """Calls `work`, in the context of the thread that made it."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._context = contextvars.copy_context()

    def run(self) -> None:
        self._context.run(self.work)

    def work(self) -> None:
        raise NotImplementedError
