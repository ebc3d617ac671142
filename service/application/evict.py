"""Room in the store: wheels that were used longest ago go first, and none that a bisection still needs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from service.application import builds
from service.application.ports import Kept, Transaction
from service.domain.lifecycle import BuildState

log = logging.getLogger(__name__)


def evict(tx: Transaction, most: int | None, now: datetime) -> None:
    """Keeps the wheels within so many bytes; None is no limit."""
    if most is None:
        return
    for wheel in surplus(tx.kept(), most):
        _remove(tx, wheel, now)


def surplus(kept: Iterable[Kept], most: int) -> tuple[Kept, ...]:
    """The wheels to remove, of those that are kept, oldest first."""
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


def _remove(tx: Transaction, wheel: Kept, now: datetime) -> None:
    build = tx.build(wheel.key, lock=True)
    # It may have been asked for since it was read: whoever asks holds this lock, and notes when.
    if build is None or build.state is not BuildState.BUILT or build.used_at != wheel.used_at:
        return
    builds.drop(tx, build, now)
