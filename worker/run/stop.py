"""How a run is ended from outside, without anyone having to ask again and again whether it should end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from worker.errors import Stopped

CANCELLED = "cancelled"
STOPPED = "stopped"
OVERDUE = "overdue"


class Stop:
    """One run's stop button: pressed once, with a reason; calls what is registered, at once when pressed before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._calls: list[Callable[[], None]] = []
        self._pressed = threading.Event()

    @property
    def reason(self) -> str | None:
        return self._reason

    def press(self, reason: str) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            calls = list(self._calls)
        self._pressed.set()
        for call in calls:
            call()

    def pause(self, seconds: float) -> None:
        """Waits. Errors: Stopped, as soon as the button is pressed."""
        self._pressed.wait(seconds)
        self.check()

    def check(self) -> None:
        """Errors: Stopped, when the button was pressed."""
        if self._reason is not None:
            raise Stopped(self._reason)

    @contextlib.contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `call` ends what is going on. It may come from any thread, and come late."""
        with self._lock:
            self._calls.append(call)
            pressed = self._reason is not None
        if pressed:
            call()
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)

    @contextlib.contextmanager
    def apart(self) -> Iterator[Stop]:
        """A button for one of several runs: pressed with this one, and not pressing it when that run is overdue."""
        own = Stop()
        with self.calling(lambda: own.press(self._reason or STOPPED)):
            yield own

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Presses the button as overdue when this takes longer."""
        timer = threading.Timer(seconds, self.press, (OVERDUE,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
