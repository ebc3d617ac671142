"""What a caller may ask for: the one place where policies are checked. Every way to a bisection, and to more for one
that is there, leads through here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from service.domain import duration
from service.domain.access import Caller, Scope
from service.domain.bisection import Request
from service.domain.budget import Budget, Priority
from service.domain.errors import NotAllowed
from service.domain.policy import CallerPolicy, like_one, policy_of

#: What comes first is more.
_PRIORITIES = tuple(Priority)


@dataclass(frozen=True)
class _Limit:
    """Of a budget, by its name in a request: what is written, and the most."""

    field: str
    written: float | None
    most: float | None
    shown: Callable[[float], str]


def allowed(request: Request, caller: Caller, policies: Sequence[CallerPolicy]) -> Request:
    """As it may be begun, where something that was not asked for is less than usual. Errors: NotAllowed."""
    policy = _policy(caller, policies)
    recipe = request.recipe
    if policy.sandboxes is not None and request.sandbox not in policy.sandboxes:
        raise _refused(policy, "sandbox", str(request.sandbox), _listed(sorted(policy.sandboxes)))
    _like(policy, "network", recipe.network, policy.networks)
    if recipe.build_command is not None:
        _like(policy, "project", recipe.build_network, policy.build_networks, called="build_network")
    for secret in recipe.secrets:
        _like(policy, "secrets", secret, policy.secrets)
    if recipe.image is not None:
        _like(policy, "image", recipe.image, policy.images)
    _at_most(policy, "resources.gpus", recipe.resources.gpus, policy.gpus)
    _at_most(policy, "width", request.width, policy.width)
    return _within(replace(request, priority=_usual_priority(request.priority, policy)), policy)


def may_prioritize(priority: Priority, caller: Caller, policies: Sequence[CallerPolicy]) -> None:
    """Errors: NotAllowed."""
    _priority(priority, _policy(caller, policies))


def may_spend(budget: Budget, request: Request, caller: Caller, policies: Sequence[CallerPolicy]) -> None:
    """`budget`: of the bisection of `request`, as it shall be from now on.

    Errors: NotAllowed; also for one without a limit that the policy has.
    """
    policy = _policy(caller, policies)
    for limit in _limits(budget, request, policy):
        if limit.most is not None and limit.written is None:
            raise _refused(policy, limit.field, "no limit", f"at most {limit.shown(limit.most)}")
        _spends(limit, policy)


def _policy(caller: Caller, policies: Sequence[CallerPolicy]) -> CallerPolicy:
    policy = policy_of(caller, policies)
    if policy is None:
        held = f"the scope {caller.scope}" if caller.scope is not None else "no scope"
        raise NotAllowed(
            f"{caller.name} may start no bisection: it has {held}",
            value=str(caller.scope or ""),
            advice=f"use a token with the scope {Scope.SUBMIT}",
        )
    return policy


def _within(request: Request, policy: CallerPolicy) -> Request:
    """With the policy's limits where the request has none."""
    limits = _limits(request.budget, request, policy)
    for limit in limits:
        _spends(limit, policy)
    probes, wall_s, gpu_s = (limit.most if limit.written is None else limit.written for limit in limits)
    notes = (
        f"{limit.field}: {limit.shown(limit.most)}, the most that the policy {policy.name!r} allows"
        for limit in limits
        if limit.written is None and limit.most is not None
    )
    budget = Budget(int(probes) if probes is not None else None, wall_s, gpu_s)
    return replace(request, budget=budget, notes=(*request.notes, *notes))


def _spends(limit: _Limit, policy: CallerPolicy) -> None:
    if limit.most is not None and limit.written is not None and limit.written > limit.most:
        raise _refused(policy, limit.field, limit.shown(limit.written), f"at most {limit.shown(limit.most)}")


def _usual_priority(asked: Priority, policy: CallerPolicy) -> Priority:
    """What a request is given that names none may be more than the policy allows."""
    if asked is Priority.NORMAL and _more(asked, policy.priority):
        return policy.priority
    _priority(asked, policy)
    return asked


def _priority(asked: Priority, policy: CallerPolicy) -> None:
    if _more(asked, policy.priority):
        usable = _PRIORITIES[_PRIORITIES.index(policy.priority) :]
        raise _refused(policy, "priority", str(asked), _listed(usable))


def _more(one: Priority, other: Priority) -> bool:
    return _PRIORITIES.index(one) < _PRIORITIES.index(other)


def _limits(budget: Budget, request: Request, policy: CallerPolicy) -> tuple[_Limit, _Limit, _Limit]:
    """In the order of a budget. GPU hours are limited where GPUs are asked for."""
    most = policy.budget
    return (
        _Limit("budget.probes", budget.probes, most.probes, "{:g}".format),
        _Limit("budget.wall", budget.wall_s, most.wall_s, duration.spoken),
        _Limit("budget.gpu_hours", budget.gpu_s, most.gpu_s if request.recipe.resources.gpus else None, _hours),
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600.0:g}"


def _like(policy: CallerPolicy, field: str, value: str, patterns: Collection[str] | None, *, called: str = "") -> None:
    if patterns is not None and not like_one(value, patterns):
        raise _refused(policy, field, value, _listed(patterns), called)


def _at_most(policy: CallerPolicy, field: str, value: int, most: int | None) -> None:
    if most is not None and value > most:
        raise _refused(policy, field, str(value), f"at most {most}")


def _listed(values: Collection[str]) -> str:
    return ", ".join(values) or "none at all"


def _refused(policy: CallerPolicy, field: str, value: str, usable: str, called: str = "") -> NotAllowed:
    return NotAllowed(
        f"{called or field}: {value!r} is not allowed by the policy {policy.name!r}",
        value=value,
        field=field,
        advice=f"allowed: {usable}; more is the operator's to allow, in FIRSTBAD_POLICIES",
    )
