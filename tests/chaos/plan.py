"""What a run is to be, from its seed alone: the parts of the stack, the bisection, the faults and their moments."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

#: Each kind of fault, and what it does.
FAULTS = {
    "worker": "kill -9 of the execution worker",
    "worker-all": "kill -9 of the execution worker and of all that it runs",
    "job": "kill -9 of a child process that the execution worker runs a job in",
    "control": "kill -9 of a control worker",
    "api": "kill -9 of the API",
    "redis": "Redis is killed and comes back empty",
    "postgres": "PostgreSQL is restarted, half of the times by -m immediate",
    "network": "the network between worker and Redis is cut for 30 s",
    "engine": "the container engine is restarted, half of the times by kill -9",
    "disk": "the disk of the store is full for a while",
    "clock": "the worker's clock jumps forward and back by hours",
    "results": "results are delivered three times, late and out of order",
    "race": "two control workers race for the same messages and sweeps",
    "cancels": "200 of many small bisections are cancelled while the others go on",
    "broker": "probes take 30 s, and the broker's time-out is 5 s",
    "silence": "the execution worker is stopped for longer than its leases last, and goes on",
}
#: Those that come along with others.
ALONG = ("worker", "worker-all", "control", "api", "redis", "postgres", "network", "clock", "results", "race")
#: After three faults of one kind a probe is given up, as it should be: so no more than two restarts in one run.
RESTARTS = ("worker", "worker-all")
#: Verdicts that a bisection comes to in any case, with time left.
VERDICTS = 4
#: In the short form: each kind of fault once, some together.
QUICK = (
    ("silence", "broker"),
    ("network", "postgres"),
    ("engine",),
    ("cancels",),
    ("worker", "api"),
    ("worker-all", "clock"),
    ("job", "race"),
    ("control", "results"),
    ("redis", "disk"),
)
COMMITS, FIRST_BAD = 60, 31


@dataclass(frozen=True)
class Moment:
    """`after`: so many verdicts; then `delay_s`. `dice`: the seed of what the fault decides by itself."""

    fault: str
    after: int
    delay_s: float
    dice: int


@dataclass(frozen=True)
class Plan:
    """`good`, `bad`: positions of the ends in the example."""

    seed: int
    database: Literal["postgresql", "sqlite"]
    controls: int
    workers: int
    sandbox: Literal["process", "docker"]
    gpus: bool
    width: int
    good: int
    bad: int
    moments: tuple[Moment, ...]

    @property
    def faults(self) -> frozenset[str]:
        return frozenset(moment.fault for moment in self.moments)

    def told(self) -> str:
        parts = [self.database, f"{self.controls} control", f"{self.workers} worker", self.sandbox]
        return " ".join([*parts, *(["gpu"] if self.gpus else []), f"width {self.width}"])


def planned(seed: int, only: str | None = None, quick: bool = False) -> Plan:
    """`only`: this fault and no other. `quick`: those of the short form, else one of each kind in turn and more."""
    dice = random.Random(f"firstbad {seed}")
    main = only or tuple(FAULTS)[seed % len(FAULTS)]
    faults = [main] if only or not quick else list(QUICK[seed % len(QUICK)])
    if not quick and main != "cancels":
        faults += _more(main, only, dice)
    docker = "engine" in faults
    database: Literal["postgresql", "sqlite"] = "sqlite" if dice.random() < 0.25 else "postgresql"
    controls, workers = dice.choice((1, 1, 2)), dice.choice((1, 1, 2))
    return Plan(
        seed=seed,
        database="postgresql" if "postgres" in faults else database,
        controls=2 if "race" in faults else controls,
        workers=workers,
        sandbox="docker" if docker else "process",
        gpus=not docker and dice.random() < 0.3,
        width=dice.choice((1, 1, 2)),
        good=FIRST_BAD - dice.randint(8, 24),
        bad=FIRST_BAD + dice.randint(8, 24),
        moments=tuple(sorted((_moment(fault, dice) for fault in faults), key=lambda m: (m.after, m.delay_s))),
    )


def _more(main: str, only: str | None, dice: random.Random) -> list[str]:
    if only is not None:
        return [only] * dice.choice((0, 0, 1)) if main in ALONG else []
    more = [dice.choice(ALONG) for _ in range(dice.choice((0, 0, 1, 1, 2)))]
    kept: list[str] = []
    for fault in more:
        restarts = sum(other in RESTARTS for other in (main, *kept))
        if (main, *kept).count(fault) < 2 and not (fault in RESTARTS and restarts >= 2):
            kept.append(fault)
    return kept


def _moment(fault: str, dice: random.Random) -> Moment:
    after = 0 if fault == "cancels" else dice.randrange(VERDICTS)
    return Moment(fault, after, round(dice.uniform(0.0, 2.0), 2), dice.getrandbits(32))
