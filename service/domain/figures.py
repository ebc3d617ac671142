"""What is counted of a whole service, and what its control workers say of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import inf

from service.domain.bisection import Node
from service.domain.lifecycle import BisectionState

#: Upper bounds in seconds of the buckets that waits, runs and builds are counted in.
WAITS_S = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, inf)
RUNS_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0, inf)


@dataclass(frozen=True)
class Tally:
    """So many things of one kind that are over. `bound`: the upper one of the bucket of `name` that they fall in, inf
    where it has none; `total`: the sum of what was measured of them, 0 where nothing is."""

    name: str
    label: str
    bound: float
    count: int
    total: float = 0.0


@dataclass(frozen=True)
class Standing:
    """So many probes or builds in one queue that are `waiting` for their turn, `sent` or `running`."""

    kind: str
    queue: str
    state: str
    count: int


@dataclass(frozen=True)
class Beat:
    """Of a control worker, as it was at that time. `moved_at`: when a message last began or ended there. `busy` of its
    threads have a message in hand, `preparing` of them a preparation, which may take minutes; `oldest_at`: since when
    the oldest of the others. `swept_at`: the end of its last sweep."""

    name: str
    at: datetime
    began_at: datetime
    moved_at: datetime
    sweep_s: float
    threads: int
    busy: int = 0
    preparing: int = 0
    oldest_at: datetime | None = None
    swept_at: datetime | None = None


@dataclass(frozen=True)
class Figures:
    """`tallies`: each name, label and bound once. `undelivered`: messages whose time has come, and the time of the
    oldest."""

    at: datetime
    tallies: tuple[Tally, ...] = ()
    standings: tuple[Standing, ...] = ()
    bisections: dict[BisectionState, int] = field(default_factory=dict)
    paused: int = 0
    nodes: tuple[Node, ...] = ()
    undelivered: int = 0
    oldest_at: datetime | None = None
    beats: tuple[Beat, ...] = ()
