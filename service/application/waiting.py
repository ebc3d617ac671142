"""What a transaction says of all that waits for its turn, is out, or was left behind: the part of the ports that
`turns`, `forecast` and the sweep read. None of it reads all rows of what waits, however many bisections there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.domain.bisection import Probe
from service.domain.lifecycle import BisectionState


@dataclass(frozen=True)
class Line:
    """Those of one queue with the same turn (`turns.turn_of`); `asked_at`: of the bisection that is first in it."""

    turn: str
    asked_at: datetime


@dataclass(frozen=True)
class Chosen:
    """A probe or a build by its id or key, at this attempt; `asked_at`: of its bisection."""

    id: str
    attempt: int
    asked_at: datetime


@dataclass(frozen=True)
class Out:
    """An attempt that was sent and has not ended: kind "probe" or "build". `silent`: it was missing the last time."""

    kind: str
    id: str
    attempt: int
    silent: bool


@dataclass(frozen=True)
class Coming:
    """A build that was sent, or is made ahead for the bisection that asks."""

    key: str
    native_key: str | None
    ahead: bool
    bisection_id: str


@dataclass(frozen=True)
class AtWork:
    """Probes that run, by node; how many queue, and builds of others that wait for their turn: counted no further than
    was asked."""

    running: Mapping[str, int]
    queued: int
    builds: int


@dataclass(frozen=True)
class Limited:
    """A live bisection with a budget of time or GPUs. `left_s`: of its wall time; None where that is not limited."""

    id: str
    left_s: float | None
    gpu_s: float | None

    @property
    def past(self) -> bool:
        return self.left_s is not None and self.left_s <= 0


class Waiting(Protocol):
    def waiting_queues(self) -> tuple[str, ...]:
        """Queues in which something waits for its turn."""

    def lines(self, queue: str, due: datetime) -> tuple[Line, ...]:
        """Of what waits in the queue and may be sent by then."""

    def lock_queue(self, queue: str) -> None:
        """No other transaction may hold it until this one ends. After all other locks, queues in alphabetical order."""

    def out(self, queue: str) -> Mapping[str, int]:
        """How many are out, by turn."""

    def slots(self, queue: str, since: datetime) -> int | None:
        """Of the nodes that serve the queue and have said something since; None when there is none."""

    def first_in(self, queue: str, turn: str, due: datetime, most: int) -> tuple[Chosen, ...]:
        """The first ones of a line, locked; what another transaction holds is passed over."""

    def send(self, queue: str, ids: Collection[str], at: datetime, to: str) -> None:
        """Notes that they were sent, by the queue `to`."""

    def all_out(self) -> tuple[Out, ...]: ...
    def busy(self) -> Mapping[str, int]:
        """By node: probes that run there, and those sent to it alone."""

    def coming(self, own: str) -> tuple[Coming, ...]:
        """`own`: the bisection that asks."""

    def at_work(self, most: int, own: str) -> AtWork: ...
    def stuck(self) -> tuple[Chosen, ...]:
        """Builds that wait for another of the same native code, though none is under way."""

    def queued_for_nodes(self) -> tuple[Probe, ...]:
        """Probes in state `queued` that one node alone may take."""

    def idle(self, states: Collection[BisectionState]) -> tuple[str, ...]:
        """Bisections in these states, not paused, of which no probe is live."""

    def building(self, states: Collection[BisectionState], most: int) -> tuple[str, ...]:
        """Bisections in these states, not paused, that need wheels built; oldest first."""

    def limited(self, now: datetime) -> tuple[Limited, ...]: ...
