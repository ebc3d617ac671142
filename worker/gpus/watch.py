"""Who else was on leased cards while a run had them: what the driver names that the run itself is not."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from worker.contract import Gpu
from worker.errors import NodeFault
from worker.gpus.cards import Cards, process
from worker.threads import Bound

log = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK_S = 2.0
PROC = Path("/proc")


class Watch(Bound):
    """`marks`: each process of the run has one in its mounts or variables, or a parent's; others have none."""

    def __init__(self, cards: Cards, gpus: tuple[Gpu, ...], marks: tuple[bytes, ...]) -> None:
        super().__init__("gpus")
        self._cards, self._gpus, self._marks = cards, gpus, marks
        self._over = threading.Event()
        self._held: dict[tuple[int, int], str] = {}

    def held(self) -> str:
        """Empty when nobody was."""
        return "; ".join(list(self._held.values()))

    def work(self) -> None:
        try:
            while True:
                for gpu in self._gpus:
                    self._look(gpu)
                if self._over.wait(LOOK_S):
                    return
        except NodeFault as fault:
            log.warning("the cards are watched no more: %s", fault.message)

    def close(self) -> None:
        self._over.set()

    def _look(self, gpu: Gpu) -> None:
        for pid in self._cards.use(gpu).pids:
            if (gpu.index, pid) not in self._held and foreign(pid, self._marks):
                said = f"GPU {gpu.index} was held by {process(pid)} outside firstbad during the run"
                self._held[gpu.index, pid] = said


def foreign(pid: int, marks: Iterable[bytes]) -> bool:
    """Whether this process is certainly none of the run; false for one that is gone or may not be looked at."""
    try:
        seen = _seen(pid)
        for parent in psutil.Process(pid).parents():
            with contextlib.suppress(OSError):  # another user's, as the machine's first process
                seen += _seen(parent.pid)
    except (OSError, psutil.Error):
        return False
    return not any(mark in seen for mark in marks)


def _seen(pid: int) -> bytes:
    """Errors: OSError."""
    return b"\0".join((PROC / str(pid) / name).read_bytes() for name in ("mountinfo", "environ"))


@contextlib.contextmanager
def watching(cards: Cards, gpus: tuple[Gpu, ...], marks: tuple[bytes, ...]) -> Iterator[Watch]:
    """Looks as long as this lasts, where there are cards and their driver counts processes as this worker does."""
    watch = Watch(cards, gpus, marks)
    if not gpus or not cards.own_pids:
        yield watch
        return
    watch.start()
    try:
        yield watch
    finally:
        watch.close()
        watch.join()
