"""Tokens, and whose a bisection is, on both databases."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from service.domain.access import Caller, Scope
from service.domain.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from tests.application.conftest import World


def test_a_token_is_known_by_its_text_which_is_kept_nowhere(world: World) -> None:
    made, text = world.flow.create_token("nightly", Scope.SUBMIT, "ada")
    assert re.fullmatch(r"fb_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", text)
    assert text.startswith(made.prefix) and len(made.prefix) == 16
    assert world.flow.recognize(text) == Caller("token:nightly", Scope.SUBMIT, made.id)
    (kept,) = world.flow.tokens()
    assert replace(kept, used_at=None) == made
    assert text not in repr(kept)


@pytest.mark.parametrize("wrong", ["", "fb_", "x" * 10_000, "fb_00000000_" + "a" * 43, "fb_\x00_" + "a" * 43])
def test_what_is_no_token_is_not_known(world: World, wrong: str) -> None:
    world.flow.create_token("nightly", Scope.SUBMIT, "ada")
    with pytest.raises(Unauthenticated) as refused:
        world.flow.recognize(wrong)
    assert wrong == "" or wrong not in str(refused.value)


def test_a_token_with_one_letter_changed_is_not_known(world: World) -> None:
    _, text = world.flow.create_token("nightly", Scope.SUBMIT, "ada")
    other = "A" if text[-1] != "A" else "B"
    with pytest.raises(Unauthenticated):
        world.flow.recognize(text[:-1] + other)


def test_a_token_works_until_it_expires_or_is_revoked(world: World) -> None:
    made, text = world.flow.create_token("a", Scope.READ, "ada", days=1.0)
    other, lasting = world.flow.create_token("b", Scope.READ, "ada")
    world.clock.pass_(86_390)
    world.flow.recognize(text)
    world.clock.pass_(20)
    for gone in (text,):
        with pytest.raises(Unauthenticated):
            world.flow.recognize(gone)
    world.flow.recognize(lasting)
    first = world.flow.revoke_token(other.id)
    assert world.flow.revoke_token(other.id) == first
    with pytest.raises(Unauthenticated):
        world.flow.recognize(lasting)
    with pytest.raises(NotFound):
        world.flow.revoke_token("nothing")
    assert [token.id for token in world.flow.tokens()] == [other.id, made.id]


def test_when_it_was_last_used_is_told_to_a_minute(world: World) -> None:
    _, text = world.flow.create_token("a", Scope.READ, "ada")
    seen = []
    for seconds in (0, 30, 31):
        world.clock.pass_(seconds)
        world.flow.recognize(text)
        seen.append(world.flow.tokens()[0].used_at)
    assert seen[0] is not None and seen[1] == seen[0]
    assert seen[2] is not None and (seen[2] - seen[0]).total_seconds() > 60


@pytest.mark.parametrize(
    ("name", "days", "field"),
    [("", None, "name"), ("a b", None, "name"), ("a" * 101, None, "name"), ("a\n", None, "name"), ("a", 0.0, "days"),
     ("a", -1.0, "days"), ("a", 4000.0, "days"), ("a", float("nan"), "days")],
)  # fmt: skip
def test_a_token_that_cannot_be_is_refused(world: World, name: str, days: float | None, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        world.flow.create_token(name, Scope.READ, "ada", days)
    assert refused.value.field == field
    assert world.flow.tokens() == ()


def test_the_name_of_one_that_works_is_taken(world: World) -> None:
    made, _ = world.flow.create_token("a", Scope.READ, "ada")
    with pytest.raises(BadRequest, match="already"):
        world.flow.create_token("a", Scope.ADMIN, "ada")
    world.flow.revoke_token(made.id)
    world.flow.create_token("a", Scope.READ, "ada")


def test_one_changes_its_own_bisections_and_an_operator_all(world: World) -> None:
    ann, bob = Caller("token:ann", Scope.SUBMIT), Caller("token:bob", Scope.SUBMIT)
    id = world.submit(by=ann).id
    world.flow.may_change(id, ann)
    world.flow.may_change(id, Caller("token:op", Scope.OPERATE))
    with pytest.raises(Forbidden, match="token:ann"):
        world.flow.may_change(id, bob)
    with pytest.raises(Forbidden):
        world.flow.may_change(id, Caller("token:ann", Scope.READ))
    with pytest.raises(NotFound):
        world.flow.may_change("nothing", ann)
