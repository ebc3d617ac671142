"""What goes on around each message that a control worker handles, and how it tells the database that it works."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

from structlog.contextvars import bound_contextvars

from service.adapters.telemetry.meters import OK, Meters, result_of
from service.adapters.telemetry.pulse import Pulse
from service.adapters.telemetry.watch import IDS
from service.application.ports import StoreBusy
from service.domain.figures import Beat

log = logging.getLogger(__name__)
#: Seconds between two beats, well below those after which a control worker is not thought to be there.
BEAT_S = 5.0
PUT_BACK = "put back"
#: Says what came of a message, where that is not to be seen.
Say = Callable[[str], None]


class Handling:
    def __init__(self, meters: Meters, pulse: Pulse) -> None:
        self._meters, self._pulse = meters, pulse

    @contextmanager
    def message(self, task: str, about: dict[str, str], *, slow: bool = False) -> Iterator[Say]:
        """`slow`: one that may take minutes."""
        results, began = [OK], perf_counter()
        with bound_contextvars(**about), self._pulse.holding(slow=slow):
            try:
                yield results.append
            except BaseException as error:
                results.append(result_of(error))
                raise
            finally:
                self._meters.handled(task, results[-1])
                level = logging.INFO if about.keys() & IDS else logging.DEBUG
                log.log(level, "%s: %s in %.3f s", task, results[-1], perf_counter() - began)

    def swept(self) -> None:
        self._pulse.swept()


def name_of_this() -> str:
    """Another one after each start: the beats of a former life are of somebody else."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


@contextmanager
def beating(pulse: Pulse, tell: Callable[[Beat], None], forget: Callable[[str], None]) -> Iterator[None]:
    """Tells while it lasts, from a thread of its own, so that neither a full nor a broken queue keeps it."""
    ended = threading.Event()

    def beats() -> None:
        while not ended.is_set():
            try:
                tell(pulse.beat())
            except StoreBusy as error:
                log.warning("the database was not told that this control worker works: %s", error)
            ended.wait(BEAT_S)

    thread = threading.Thread(target=beats, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(BEAT_S)
        with suppress(StoreBusy):
            forget(pulse.name)
