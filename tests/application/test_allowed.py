"""Who may ask for what: every limit of a policy, by scope and by name, on the way in and afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.application.allowed import allowed, may_prioritize, may_spend
from service.domain.access import Caller, Scope
from service.domain.bisection import Reproduction, Request
from service.domain.budget import Budget, Priority
from service.domain.errors import NotAllowed
from service.domain.policy import CallerPolicy
from service.domain.recipe import Recipe, Resources, SandboxKind
from tests.application.conftest import World
from tests.callers import caller

RECIPE = Recipe("r", build_command="make")
PLAIN = Request("https://example.org/r", ("a",), "b", Reproduction("true"), RECIPE, SandboxKind.PROCESS)
TIGHT = CallerPolicy(
    "tight",
    sandboxes=frozenset({SandboxKind.DOCKER}),
    networks=("none",),
    build_networks=("none",),
    secrets=("HF_*",),
    images=("ghcr.example/ours/*",),
    gpus=2,
    width=4,
    priority=Priority.LOW,
    budget=Budget(40, 3600.0, 7200.0),
)
FITTING = replace(
    PLAIN,
    sandbox=SandboxKind.DOCKER,
    recipe=replace(RECIPE, build_network="none", image="ghcr.example/ours/x:1", secrets=("HF_TOKEN",)),
)


def with_recipe(**change: object) -> Request:
    return replace(FITTING, recipe=replace(FITTING.recipe, **change))  # type: ignore[arg-type]


def refused(request: Request, policy: CallerPolicy = TIGHT, by: Caller | None = None) -> NotAllowed:
    with pytest.raises(NotAllowed) as caught:
        allowed(request, by or caller("ann", Scope.SUBMIT), (policy,))
    return caught.value


@pytest.mark.parametrize(
    ("request_", "field", "value", "usable"),
    [
        (replace(FITTING, sandbox=SandboxKind.PROCESS), "sandbox", "process", "docker"),
        (with_recipe(network="bridge"), "network", "bridge", "none"),
        (with_recipe(build_network="bridge"), "project", "bridge", "none"),
        (with_recipe(secrets=("HF_TOKEN", "AWS_KEY")), "secrets", "AWS_KEY", "HF_*"),
        (with_recipe(image="ghcr.example/theirs/x:1"), "image", "ghcr.example/theirs/x:1", "ghcr.example/ours/*"),
        (with_recipe(image="evil.example/ghcr.example/ours/x"), "image", "evil.example/ghcr", "ghcr.example/ours/*"),
        (with_recipe(resources=Resources(gpus=3)), "resources.gpus", "3", "at most 2"),
        (replace(FITTING, width=5), "width", "5", "at most 4"),
        (replace(FITTING, priority=Priority.HIGH), "priority", "high", "low"),
        (replace(FITTING, budget=Budget(probes=41)), "budget.probes", "41", "at most 40"),
        (replace(FITTING, budget=Budget(wall_s=3660.0)), "budget.wall", "1 h 1 min", "at most 1 h 0 min"),
        (
            replace(with_recipe(resources=Resources(gpus=1)), budget=Budget(gpu_s=10800.0)),
            "budget.gpu_hours",
            "3",
            "at most 2",
        ),
    ],
)
def test_a_refusal_names_the_field_the_value_the_policy_and_what_is_allowed(
    request_: Request, field: str, value: str, usable: str
) -> None:
    error = refused(request_)
    assert error.field == field and error.value.startswith(value) and usable in error.advice
    assert error.value in error.detail and "'tight'" in error.detail and "FIRSTBAD_POLICIES" in error.advice
    assert error.status == 403


def test_what_fits_gets_the_policys_limits_where_it_has_none() -> None:
    made = allowed(replace(FITTING, budget=Budget(probes=7)), caller("ann", Scope.SUBMIT), (TIGHT,))
    assert made.budget == Budget(7, 3600.0, None) and made.priority is Priority.LOW
    assert made.notes == ("budget.wall: 1 h 0 min, the most that the policy 'tight' allows",)
    on_cards = allowed(with_recipe(resources=Resources(gpus=2)), caller("ann", Scope.SUBMIT), (TIGHT,))
    assert on_cards.budget == TIGHT.budget


def test_who_only_submits_gets_by_default_no_secrets_no_other_network_and_no_hurry() -> None:
    usual = caller("ann", Scope.SUBMIT)
    assert allowed(PLAIN, usual, ()) == PLAIN
    with_network = replace(PLAIN, recipe=replace(RECIPE, network="bridge"))
    assert allowed(with_network, usual, ()) == with_network
    wrong = [
        replace(PLAIN, recipe=replace(RECIPE, secrets=("HF_TOKEN",))),
        replace(PLAIN, recipe=replace(RECIPE, network="lab")),
        replace(PLAIN, recipe=replace(RECIPE, build_network="lab")),
        replace(PLAIN, priority=Priority.HIGH),
    ]
    for request in wrong:
        with pytest.raises(NotAllowed, match="the policy 'submit'"):
            allowed(request, usual, ())
        for scope in (Scope.OPERATE, Scope.ADMIN):
            assert allowed(request, caller("ann", scope), ()) == request


@pytest.mark.parametrize("scope", [None, Scope.READ])
def test_who_may_only_look_starts_nothing_whatever_a_policy_says(scope: Scope | None) -> None:
    everything = CallerPolicy("everything")
    for refuse in (
        lambda: allowed(PLAIN, caller("ann", scope), (everything,)),
        lambda: may_prioritize(Priority.LOW, caller("ann", scope), (everything,)),
        lambda: may_spend(Budget(2), PLAIN, caller("ann", scope), (everything,)),
    ):
        with pytest.raises(NotAllowed, match="ann may start no bisection"):
            refuse()


def test_the_first_policy_that_is_for_the_caller_decides() -> None:
    ones = (
        CallerPolicy("outsiders", callers=("github:*",), width=1),
        CallerPolicy("nightly", scope=Scope.SUBMIT, callers=("token:nightly",), width=9),
        CallerPolicy("others", scope=Scope.SUBMIT, width=2),
    )
    wide = replace(PLAIN, width=9)
    assert allowed(wide, caller("token:nightly", Scope.SUBMIT), ones) == wide
    for name, scope, policy in (
        ("github:ann", Scope.ADMIN, "outsiders"),
        ("token:nightly2", Scope.SUBMIT, "others"),
        ("xgithub:ann", Scope.SUBMIT, "others"),
    ):
        with pytest.raises(NotAllowed, match=f"'{policy}'"):
            allowed(wide, caller(name, scope), ones)
    assert allowed(wide, caller("token:nightly", Scope.OPERATE), ones) == wide


def test_more_budget_is_held_to_the_policy_and_no_limit_is_more_than_any() -> None:
    ann = caller("ann", Scope.SUBMIT)
    on_cards = with_recipe(resources=Resources(gpus=1))
    may_spend(TIGHT.budget, on_cards, ann, (TIGHT,))
    may_spend(replace(TIGHT.budget, gpu_s=None), FITTING, ann, (TIGHT,))
    for budget, field in (
        (Budget(41, 1.0, 1.0), "budget.probes"),
        (Budget(40, None, 1.0), "budget.wall"),
        (Budget(40, 1.0), "budget.gpu_hours"),
    ):
        with pytest.raises(NotAllowed) as caught:
            may_spend(budget, on_cards, ann, (TIGHT,))
        assert caught.value.field == field


@given(st.sampled_from(Priority), st.sampled_from(Priority))
def test_a_priority_that_was_allowed_may_be_asked_for_again(asked: Priority, most: Priority) -> None:
    ann, policies = caller("ann", Scope.SUBMIT), (CallerPolicy("p", priority=most),)
    try:
        made = allowed(replace(PLAIN, priority=asked), ann, policies)
    except NotAllowed:
        with pytest.raises(NotAllowed):
            may_prioritize(asked, ann, policies)
    else:
        may_prioritize(made.priority, ann, policies)


def test_the_flow_checks_it_when_a_bisection_is_drafted_submitted_and_changed(world: World) -> None:
    submitter = caller("ann", Scope.SUBMIT)
    with pytest.raises(NotAllowed):
        world.submit(submitter, secrets=("HF_TOKEN",))
    assert world.flow.bisections() == ()
    id = world.submit(submitter).id
    with pytest.raises(NotAllowed):
        world.flow.prioritize(id, Priority.HIGH, submitter)
    assert world.flow.bisection(id).priority is Priority.NORMAL
    assert world.flow.prioritize(id, Priority.LOW, submitter).priority is Priority.LOW
