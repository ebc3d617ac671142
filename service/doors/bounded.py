"""Asking what may hang, without hanging."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class Bounded(Generic[T]):
    """Asks in a thread of its own, once at a time: what hangs costs one thread, and those who ask their patience.

    Not in those of all other requests, which may hang on the same thing, all of them.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None

    async def __call__(self, within_s: float) -> T:
        """Errors: TimeoutError; those of the asked."""
        waiting = asyncio.shield(asyncio.wrap_future(self._begun()))
        # It may fail when nobody waits any more.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.wait_for(waiting, within_s)

    def _begun(self) -> Future[T]:
        with self._lock:
            if self._asked is None:
                self._asked = Future()
                context = copy_context()
                threading.Thread(target=context.run, args=(self._answer, self._asked), daemon=True).start()
            return self._asked

    def _answer(self, asked: Future[T]) -> None:
        try:
            found = self._ask()
        except BaseException as error:  # noqa: BLE001 it is raised where it was asked
            self._over()
            asked.set_exception(error)
        else:
            self._over()
            asked.set_result(found)

    def _over(self) -> None:
        with self._lock:
            self._asked = None
