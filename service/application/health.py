"""Whether the parts of the service do their work. A busy part is well; one that stands still is not, however alive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from math import floor

from service.application.nodes import STRANGE, alive
from service.application.ports import Ports, StoreBusy
from service.domain.bisection import Node
from service.domain.figures import Beat

#: Says why a part does not do its work; None when it does.
Check = Callable[[], str | None]
#: A control worker tells every few seconds that it is there; so long without a word, and it is not.
SILENT_S = 30.0
#: A report is handled in moments. So long in which none ended, while one of them is in hand, is no work any more.
STILL_S = 120.0
#: Sweeps come by way of the queue: so many that an idle worker was not given, and it does not read its queue.
SWEEPS = 6


def checks(ports: Ports) -> dict[str, Check]:
    def of_control() -> str | None:
        with ports.bisections.transaction() as tx:
            return control(tx.beats(), ports.clock.now())

    def of_workers() -> str | None:
        with ports.bisections.transaction() as tx:
            return workers(tx.nodes(), ports.clock.now())

    return {
        "database": ports.bisections.trouble,
        "queue": ports.queue.trouble,
        "control": _if_known(ports, of_control),
        "workers": _if_known(ports, of_workers),
    }


def _if_known(ports: Ports, check: Check) -> Check:
    """A database of another version may have no place for it."""

    def checked() -> str | None:
        try:
            trouble = ports.bisections.trouble()
            return check() if trouble is None else f"not known: {trouble}"
        except StoreBusy as error:
            return f"not known: {error}"

    return checked


def workers(nodes: Collection[Node], now: datetime) -> str | None:
    there = alive(nodes, now)
    if there and all(node.out.startswith(STRANGE) for node in there):
        return f"no worker can be understood: {there[0].name} {there[0].out}"
    return None if there else "no worker has reported in the last minute"


def there(beats: Collection[Beat], now: datetime) -> tuple[Beat, ...]:
    """Of control workers that tell of themselves; one that was killed does not take its last word back."""
    return tuple(beat for beat in beats if now - beat.at <= timedelta(seconds=SILENT_S))


def control(beats: Collection[Beat], now: datetime) -> str | None:
    """One that works is enough. `beats`: newest first."""
    if not beats:
        return "no control worker has said anything yet"
    troubles = [_trouble(beat, now) for beat in beats]
    return None if None in troubles else troubles[0]


def _trouble(beat: Beat, now: datetime) -> str | None:
    if not there((beat,), now):
        return f"the control worker {beat.name} has said nothing for {_ago(beat.at, now)}"
    if now - beat.moved_at <= timedelta(seconds=max(STILL_S, SWEEPS * beat.sweep_s)):
        return None
    still = f"nothing began or ended in the control worker {beat.name} for {_ago(beat.moved_at, now)}"
    if beat.oldest_at is not None and now - beat.oldest_at > timedelta(seconds=STILL_S):
        return f"{still}; its oldest message is in hand for {_ago(beat.oldest_at, now)}"
    # Preparations of all threads may take that long: they clone.
    return f"{still}, although it is idle: it does not read its queue" if beat.busy < beat.threads else None


def _ago(then: datetime, now: datetime) -> str:
    return f"{floor((now - then).total_seconds())} s"
