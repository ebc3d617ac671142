"""What a caller may ask for: the one place where policies are checked. Every way to a bisection, and to more for one
that is there, leads through here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from service.domain import duration
from service.domain.access import Caller, Scope
from service.domain.bisection import Request
from service.domain.budget import Budget, Priority
from service.domain.errors import NotAllowed
from service.domain.policy import CallerPolicy, like_one, policy_of

#: What comes first is more.
_PRIORITIES = tuple(Priority)


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


def may_spend(budget: Budget, caller: Caller, policies: Sequence[CallerPolicy]) -> None:
    """`budget`: as it shall be from now on. Errors: NotAllowed; also for one without a limit that the policy has."""
    policy = _policy(caller, policies)
    for name, written, most in _limits(budget, policy):
        if most is not None and (written is None or written > most):
            raise _refused(policy, f"budget.{name}", _shown(name, written), f"at most {_shown(name, most)}")


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
    """With the policy's limits where the request has none. GPU hours are limited where GPUs are asked for."""
    budget, notes = request.budget, []
    for (name, written, most), field in zip(_limits(budget, policy), fields(Budget), strict=True):
        if most is None or (name == "gpu_hours" and not request.recipe.resources.gpus):
            continue
        if written is None:
            budget = replace(budget, **{field.name: most})
            notes.append(f"budget.{name}: {_shown(name, most)}, the most that the policy {policy.name!r} allows")
        elif written > most:
            raise _refused(policy, f"budget.{name}", _shown(name, written), f"at most {_shown(name, most)}")
    return replace(request, budget=budget, notes=(*request.notes, *notes))


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


def _limits(budget: Budget, policy: CallerPolicy) -> Sequence[tuple[str, float | None, float | None]]:
    """As requests call them, in the order of a budget: what is written, and the most."""
    most = policy.budget
    return (
        ("probes", budget.probes, most.probes),
        ("wall", budget.wall_s, most.wall_s),
        ("gpu_hours", budget.gpu_s, most.gpu_s),
    )


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "no limit"
    if name == "wall":
        return duration.spoken(value)
    return f"{value / 3600.0:g}" if name == "gpu_hours" else f"{value:g}"


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
