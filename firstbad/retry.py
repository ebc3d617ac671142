"""When a call is sent again, and how long after."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

#: What was not carried out: the service says so, or a proxy before it reached nobody.
NOT_DONE = frozenset([429, 503])
#: What may have been carried out.
UNCLEAR = frozenset([502, 504])


@dataclass(frozen=True)
class Retry:
    """Of calls that are safe to send again. Pauses double from `first_s` to `most_s`, with some chance in them.

    `times`: after the first. `refused`: also where nothing listens at the address, as while a service starts again.
    A service that names a pause (`Retry-After`) is given it, unless that is longer than `longest_s`.
    """

    times: int = 3
    first_s: float = 0.2
    most_s: float = 5.0
    longest_s: float = 60.0
    refused: bool = True

    def pause_s(self, tried: int, asked_s: float | None) -> float | None:
        """None where it is not worth it. `tried`: how often it was sent."""
        if tried > self.times or (asked_s or 0.0) > self.longest_s:
            return None
        if asked_s is not None:
            return asked_s
        return min(self.most_s, self.first_s * 2.0 ** (tried - 1)) * random.uniform(0.5, 1.0)

    def worth(self, met: httpx.TransportError | int, *, again: bool) -> bool:
        """`met`: the status of the answer, or why there is none. `again`: as of the Call."""
        if isinstance(met, int):
            return met in NOT_DONE or (again and met in UNCLEAR)
        if isinstance(met, httpx.UnsupportedProtocol):
            return False
        if isinstance(met, httpx.ConnectError | httpx.ConnectTimeout):
            return self.refused
        return again


NEVER = Retry(times=0)
