"""Threads: such as work for an order, whose lines carry what its lines do, and such as a worker cannot be without."""

from __future__ import annotations

import contextvars
import os
import signal
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


class Vital(threading.Thread):
    """A worker cannot be without it: without leases or heartbeats it would go on as one whom nobody believes to be
    there. When it breaks the worker ends, to be started anew."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)


#: Set when a vital thread broke.
broken = threading.Event()


def broke(thread: threading.Thread | None) -> None:
    """To be called with each thread that ended by an exception."""
    if isinstance(thread, Vital):
        broken.set()
        os.kill(os.getpid(), signal.SIGTERM)
