"""What a bisection may do next, in words that `plan` and `measuring` choose and `advance` carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.bisection import Answer, Probe, Problem, Purpose
from service.domain.lifecycle import LIVE_PROBES, BisectionState


@dataclass(frozen=True)
class Wanted:
    """A commit to probe, and why. `target`: the node that shall try it; any, when None."""

    sha: str
    purpose: Purpose
    target: str | None = None


@dataclass(frozen=True)
class Step:
    """The next move: a state to go to (or none), probes to plan, probes that became worthless, what the end is.

    `ahead`: commits whose wheels may be built meanwhile, the most useful first. `note`: how the search goes, for the
    report. Nothing at all means: wait for what is in flight.
    """

    state: BisectionState | None = None
    wanted: tuple[Wanted, ...] = ()
    worthless: tuple[Probe, ...] = ()
    answer: Answer | None = None
    problem: Problem | None = None
    candidates_left: int | None = None
    expected_probes: float | None = None
    ahead: tuple[str, ...] = ()
    note: str = ""


def live_of(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    return tuple(probe for probe in probes if probe.state in LIVE_PROBES)


def stopped(state: BisectionState, problem: Problem, probes: Sequence[Probe]) -> Step:
    """The end, whatever is still under way."""
    return Step(state=state, problem=problem, worthless=live_of(probes))
