"""What a bisection has cost, in the terms of its budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from service.domain.bisection import Bisection, Probe
from service.domain.lifecycle import ProbeState


@dataclass(frozen=True)
class Spent:
    """As of a Budget: what it limits, all of it known."""

    probes: int = 0
    wall_s: float = 0.0
    gpu_s: float = 0.0


def spent(found: Bisection, probes: Iterable[Probe], now: datetime) -> Spent:
    """`probes`: all of the bisection. What runs has cost its cards since it held them."""
    several = tuple(probes)
    cards = found.request.recipe.resources.gpus
    running = sum(_seconds(p.leased_at, now) for p in several if p.state is ProbeState.RUNNING)
    return Spent(
        # A number's run may say nothing yet, and was one all the same.
        probes=sum(probe.state in (ProbeState.JUDGED, ProbeState.FAULTED) for probe in several),
        wall_s=wall_s(found, now),
        gpu_s=sum(probe.gpu_leased_s for probe in several) + cards * running,
    )


def wall_s(found: Bisection, now: datetime) -> float:
    """Seconds since it was submitted, or until it ended, without those in which it was paused."""
    return lasted_s(found.created_at, found.ended_at or now, found.paused_at, found.paused_s)


def without_rest(ended: Bisection, now: datetime) -> Bisection:
    """It, to go on: the time since its end is not spent, and a pause in which it ended is over."""
    rested = _seconds(ended.paused_at or ended.ended_at, now)
    return replace(ended, ended_at=None, paused_at=None, paused_s=ended.paused_s + rested)


def lasted_s(begin: datetime, end: datetime, paused_at: datetime | None, paused_s: float) -> float:
    """`paused_at`: since when it is; `paused_s`: seconds of the pauses before."""
    return max(_seconds(begin, end) - paused_s - _seconds(paused_at, end), 0.0)


def _seconds(start: datetime | None, end: datetime) -> float:
    return max((end - start).total_seconds(), 0.0) if start is not None else 0.0
