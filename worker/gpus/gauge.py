"""How fast and how hot leased cards were while a run had them, and what held them back."""

from __future__ import annotations

import contextlib
import logging
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from worker.contract import Gpu
from worker.errors import NodeFault
from worker.gpus.cards import Cards, State
from worker.threads import Bound

log = logging.getLogger(__name__)

#: Seconds between two looks, and how many are kept: the last day of a run.
LOOK_S, KEPT = 1.0, 86_400


@dataclass(frozen=True)
class Look:
    """`at`: seconds of the epoch. `states`: of each card."""

    at: float
    states: tuple[State, ...]


class Gauge(Bound):
    def __init__(self, cards: Cards, gpus: tuple[Gpu, ...]) -> None:
        super().__init__("gauge")
        self._cards, self._gpus = cards, gpus
        self._over = threading.Event()
        self._looks: deque[Look] = deque(maxlen=KEPT)

    def facts(self, begin: float, end: float) -> dict[str, str]:
        """Of what was seen between these seconds of the epoch, once it is closed."""
        return summary(tuple(self._looks), begin, end)

    def work(self) -> None:
        try:
            while True:
                self._looks.append(Look(time.time(), tuple(self._cards.state(gpu) for gpu in self._gpus)))
                if self._over.wait(LOOK_S):
                    return
        except NodeFault as fault:
            log.warning("the clocks of the cards are watched no more: %s", fault.message)

    def close(self) -> None:
        self._over.set()


@contextlib.contextmanager
def gauging(cards: Cards, gpus: tuple[Gpu, ...]) -> Iterator[Gauge]:
    gauge = Gauge(cards, gpus)
    if not gpus:
        yield gauge
        return
    gauge.start()
    try:
        yield gauge
    finally:
        gauge.close()
        gauge.join()


def summary(looks: Sequence[Look], begin: float, end: float) -> dict[str, str]:
    """Of all cards together. Where nobody looked in that time, the look that was nearest to it counts."""
    counted = [look for look in looks if begin <= look.at <= end]
    if looks and not counted:
        middle = (begin + end) / 2
        counted = [min(looks, key=lambda look: abs(look.at - middle))]
    states = [state for look in counted for state in look.states]
    found = {
        "gpu_clock_mhz": _range([state.clock_mhz for state in states if state.clock_mhz is not None]),
        "gpu_temperature_c": _range([state.temperature_c for state in states if state.temperature_c is not None]),
        "throttled": ", ".join(dict.fromkeys(reason for state in states for reason in state.throttled)),
    }
    return {name: value for name, value in found.items() if value}


def _range(values: Sequence[int]) -> str:
    """Least, median and most: "1755/1965/1980"."""
    return f"{min(values)}/{statistics.median(values):.0f}/{max(values)}" if values else ""
