"""Ends a bisection whose budget is spent, with what is known by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from service.application import wording
from service.application.keys import Scope
from service.application.measuring import Measured
from service.application.moves import Step, live_of, stopped
from service.application.plan import evidence_of, noise_of
from service.domain.bisection import Answer, Bisection, Probe
from service.domain.budget import Budget
from service.domain.lifecycle import BisectionState
from service.domain.spending import Spent, spent
from service.domain.suspects import MOST_NAMED
from service.search import known


def within(
    bisection: Bisection, probes: Sequence[Probe], scope: Scope, taken: Step, measured: Measured | None, now: datetime
) -> Step:
    """The step as far as the budget goes; the end where it is spent and the step is none itself."""
    budget = bisection.budget
    if taken.state is not None or budget == Budget():
        return taken
    so_far = spent(bisection, probes, now)
    going = [probe for probe in live_of(probes) if probe not in taken.worthless]
    left = budget.probes - so_far.probes - len(going) if budget.probes is not None else None
    if over(budget, so_far) or (left is not None and left <= 0 and not going):
        return _ended(bisection, probes, scope, taken, measured, so_far)
    return taken if left is None else replace(taken, wanted=taken.wanted[: max(left, 0)])


def over(budget: Budget, so_far: Spent) -> bool:
    """Whether its time or its GPUs are spent; its probes are when no more may be tried, which `within` knows."""
    limits = ((budget.wall_s, so_far.wall_s), (budget.gpu_s, so_far.gpu_s))
    return any(limit is not None and used >= limit for limit, used in limits)


def _ended(
    bisection: Bisection,
    probes: Sequence[Probe],
    scope: Scope,
    taken: Step,
    measured: Measured | None,
    so_far: Spent,
) -> Step:
    if bisection.state is not BisectionState.SEARCHING:
        problem = wording.budget_spent(bisection.budget, so_far)
        return stopped(BisectionState.CANCELLED, problem, probes)
    if measured is not None:
        shas = measured.numbers.known(scope.range)
    else:
        shas = known(scope.range, evidence_of(bisection, probes), scope.lead.prior, noise_of(bisection))
    expected = taken.expected_probes if taken.expected_probes is not None else bisection.expected_probes
    why = wording.why_budget(bisection.budget, so_far, expected)
    named = _named(shas, by_suspicion=measured is None and noise_of(bisection) is not None)
    return Step(BisectionState.SUSPECTS, (), live_of(probes), Answer(named, why), None, len(shas), 0.0)


def _named(shas: tuple[str, ...], *, by_suspicion: bool) -> tuple[str, ...]:
    """Those that an answer names: each list shows them, and a large range's would be megabytes. `by_suspicion`: the
    first ones are the most suspect; else both ends tell what is left."""
    if len(shas) <= MOST_NAMED:
        return shas
    half = MOST_NAMED // 2
    return shas[:MOST_NAMED] if by_suspicion else (*shas[:half], *shas[-half:])
