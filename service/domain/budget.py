"""What a bisection may cost, and which of several goes first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Priority(StrEnum):
    """Between bisections: all that is `high` goes before what is `normal`, and that before what is `low`."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


@dataclass(frozen=True)
class Budget:
    """When it is spent the bisection ends with what is known so far. What is None is not limited.

    `probes`: that were tried, both ends included. `wall_s`: seconds since it was submitted, without those in which it
    was paused. `gpu_s`: cards times the seconds that runs held them, in all attempts.
    """

    probes: int | None = None
    wall_s: float | None = None
    gpu_s: float | None = None
