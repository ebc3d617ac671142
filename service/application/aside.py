"""What may take long, done aside: who asks for it waits for so long and no longer, and it goes on by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from typing import Any, TypeVar

T = TypeVar("T")
#: So many things are done at once; more are not begun.
MOST = 8


class StillAtIt(Exception):
    """It goes on, or was not begun since so much else is under way."""


class Aside:
    """`run` with the key of what is under way waits for that: 50 who ask for one clone wait for one."""

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), dict[str, Future[Any]]()

    def run(self, key: str, work: Callable[[], T], within_s: float) -> T:
        """Errors: StillAtIt, and those of the work."""
        future = self._begun(key, work)
        try:
            return future.result(timeout=max(within_s, 0.0))  # type: ignore[no-any-return]
        except TooLate:
            if future.done():
                raise
            raise StillAtIt from None

    def _begun(self, key: str, work: Callable[[], Any]) -> Future[Any]:
        with self._lock:
            if (there := self._running.get(key)) is not None:
                return there
            if len(self._running) >= MOST:
                raise StillAtIt
            future: Future[Any] = Future()
            self._running[key] = future
        # A daemon: to clone a large repository may take hours, and the service can be stopped meanwhile.
        threading.Thread(target=self._do, args=(key, future, work), name="aside", daemon=True).start()
        return future

    def _do(self, key: str, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001
            # It is raised where it is waited for.
            self._gone(key)
            future.set_exception(error)
        else:
            self._gone(key)
            future.set_result(result)

    def _gone(self, key: str) -> None:
        with self._lock:
            del self._running[key]
