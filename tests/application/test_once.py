"""A request that is sent twice with one key begins one bisection, on both databases."""

from __future__ import annotations

import threading

import pytest

from service.application.submission import BudgetForm, ResourcesForm, Submission
from service.domain.errors import BadRequest
from tests.application.conftest import World
from tests.callers import caller


def asked(world: World, **more: object) -> Submission:
    return Submission(
        good=(world.shas[0],), bad=world.shas[-1], repo=str(world.repository), project="source", script="true", **more
    )


def test_the_same_key_begins_one_bisection_however_often_it_is_sent(world: World) -> None:
    full = asked(world, budget=BudgetForm(probes="40", wall="0.1"), priority="high", timeout="90s", env={"A": "b"})
    first = world.flow.submit(full, caller("me"), "nightly")
    world.workers.prepare(world.flow)
    again = world.flow.submit(full, caller("me"), "nightly")
    assert again == world.flow.bisection(first.id)
    assert len(world.flow.bisections()) == 1 and not world.workers.prepares


def test_another_key_or_another_submitter_begins_another(world: World) -> None:
    ids = [
        world.flow.submit(asked(world), caller(who), key).id for who in ("me", "you") for key in ("a", "b", None, None)
    ]
    assert len(set(ids)) == 8 == len(world.flow.bisections())


def test_a_key_of_another_request_is_refused_with_what_it_began(world: World) -> None:
    first = world.flow.submit(asked(world), caller("me"), "k")
    other = asked(world, resources=ResourcesForm(labels=("x",)))
    with pytest.raises(BadRequest, match=f"has begun the bisection {first.id}") as caught:
        world.flow.submit(other, caller("me"), "k")
    assert (caught.value.field, caught.value.value) == ("Idempotency-Key", first.id)


def test_ten_at_the_same_time_begin_one(world: World) -> None:
    together, ids = threading.Barrier(10), []

    def click() -> None:
        together.wait()
        ids.append(world.flow.submit(asked(world), caller("me"), "double click").id)

    threads = [threading.Thread(target=click) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 10 and len(set(ids)) == 1
    assert len(world.workers.prepares) == 1
