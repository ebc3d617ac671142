"""What callers may ask for when they submit, as the operator says it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from service.domain.access import Caller, Scope
from service.domain.budget import Budget, Priority
from service.domain.recipe import BRIDGE, NO_NETWORK, SandboxKind


@dataclass(frozen=True)
class CallerPolicy:
    """`scope`, `callers`: whom it is for; None and none is everybody. What is None is as the service allows it.

    `callers`, `networks`, `build_networks`, `secrets` and `images` are patterns, in which * stands for anything.
    `gpus`: of one run. `priority`: the highest. `budget`: the most that one may name, and what is had by one that
    names none.
    """

    name: str
    scope: Scope | None = None
    callers: tuple[str, ...] = ()
    sandboxes: frozenset[SandboxKind] | None = None
    networks: tuple[str, ...] | None = None
    build_networks: tuple[str, ...] | None = None
    secrets: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    gpus: int | None = None
    width: int | None = None
    priority: Priority = Priority.HIGH
    budget: Budget = field(default_factory=Budget)


#: Of whom none of the operator's is. Who only submits need not be trusted with what the nodes hold.
USUAL = {
    Scope.SUBMIT: CallerPolicy(
        "submit",
        networks=(NO_NETWORK, BRIDGE),
        build_networks=(NO_NETWORK, BRIDGE),
        secrets=(),
        priority=Priority.NORMAL,
    ),
    Scope.OPERATE: CallerPolicy("operate"),
    Scope.ADMIN: CallerPolicy("admin"),
}


def policy_of(caller: Caller, policies: Sequence[CallerPolicy]) -> CallerPolicy | None:
    """The first that is for this caller, else the usual one of its scope; None for one that may submit nothing."""
    if caller.scope is None or (usual := USUAL.get(caller.scope)) is None:
        return None
    return next((policy for policy in policies if _is_for(policy, caller)), usual)


def _is_for(policy: CallerPolicy, caller: Caller) -> bool:
    named = not policy.callers or like_one(caller.name, policy.callers)
    return named and policy.scope in (None, caller.scope)


def like_one(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
