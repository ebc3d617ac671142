"""Room in the store: wheels that were used longest ago go first, and none that a bisection still needs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from service.application import builds
from service.application.ports import Kept, Transaction
from service.domain.lifecycle import BuildState

log = logging.getLogger(__name__)


def surplus(kept: Iterable[Kept], most: int) -> tuple[Kept, ...]:
    """The wheels to remove so that the others are within so many bytes; `kept` has the oldest first."""
    wheels = tuple(kept)
    left, gone = sum(wheel.bytes for wheel in wheels), []
    for wheel in wheels:
        if left > most and not wheel.needed:
            gone.append(wheel)
            left -= wheel.bytes
    if left > most:
        log.warning(
            "the store holds %d bytes of wheels that live bisections need, more than the %d allowed", left, most
        )
    return tuple(gone)


def aged(kept: Iterable[Kept], now: datetime, most_s: float | None) -> tuple[Kept, ...]:
    """The wheels that nobody has asked for in so many seconds."""
    if most_s is None:
        return ()
    before = now - timedelta(seconds=most_s)
    # One without a time is of an age when none was kept.
    return tuple(wheel for wheel in kept if not wheel.needed and (wheel.used_at is None or wheel.used_at < before))


def evict(tx: Transaction, wheel: Kept, now: datetime) -> bool:
    """Whether it leaves. One wheel a transaction, since whoever locks several builds does so in its own order."""
    build = builds.locked(tx, wheel.key)
    # It may have been asked for since it was read: whoever asks holds this lock, and notes when.
    if build is None or build.state is not BuildState.BUILT or build.used_at != wheel.used_at:
        return False
    builds.drop(tx, build, now)
    return True
