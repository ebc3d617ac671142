"""What an order's time went into, noted as it goes. Without a `recording` this costs nothing.

What traces are made of (worker.tracing), without knowing of them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from worker.errors import FixupFails, NodeFault, Stopped

#: Parts of one order that are kept: a server that is asked for ever makes no more.
MOST = 1000


@dataclass
class Part:
    """Seconds of the epoch. `within`: the number of the part that it is a part of. `error`: why it did not end well."""

    name: str
    begin: float
    end: float
    within: int | None = None
    error: str = ""


@dataclass
class Parts:
    """In the order in which they began."""

    found: list[Part] = field(default_factory=list)

    def add(self, part: Part) -> int | None:
        if len(self.found) >= MOST:
            return None
        self.found.append(part)
        return len(self.found) - 1


_now: ContextVar[tuple[Parts, int | None] | None] = ContextVar("firstbad_parts", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Parts]:
    """What this thread does meanwhile."""
    parts = Parts()
    token = _now.set((parts, None))
    try:
        yield parts
    finally:
        _now.reset(token)


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    current = _now.get()
    if current is None:
        yield
        return
    parts, within = current
    began, clock = time.time(), time.monotonic()
    mine = Part(name, began, began, within)
    token = _now.set((parts, parts.add(mine)))
    try:
        yield
    except (NodeFault, Stopped, FixupFails) as error:
        mine.error = str(error)[:500]
        raise
    finally:
        _now.reset(token)
        mine.end = began + time.monotonic() - clock


def past(name: str, begin: float, seconds: float) -> None:
    """One that is over, as another process has told."""
    current = _now.get()
    if current is not None:
        parts, within = current
        parts.add(Part(name, begin, begin + max(0.0, seconds), within))
