"""Whatever the domain can hold comes back from the database equal to what was put in."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.domain.bisection import Bisection, Build, Message, Node, Probe
from tests.adapters import samples

LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = itertools.count()

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
integers = st.integers(-(2**31), 2**31 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
zones = st.just(UTC) | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=zones)  # noqa: DTZ001
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | floats | text | st.text(st.just("\0"), min_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)
BASES: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: integers,
    float: floats,
    bool: st.booleans(),
    type(None): st.none(),
    datetime: times,
    object: json,
}


@functools.cache
def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Every field of every nested dataclass drawn by its type."""
    if kind in BASES:
        return BASES[kind]
    if is_dataclass(kind):
        # Deferred, as an outcome may hold another one.
        return st.deferred(
            lambda: st.builds(kind, **{name: any_of(hint) for name, hint in get_type_hints(kind).items()})
        )
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return st.lists(any_of(inner[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(any_of(inner[0]), any_of(inner[1]), max_size=3)
    return st.one_of([any_of(one) for one in inner])


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    with Database(engine).transaction() as transaction:
        transaction.add_bisection(samples.fresh("owner"))
    yield Database(engine)
    engine.dispose()


@LAW
@given(bisection=any_of(Bisection), then=any_of(Bisection))
def test_a_bisection_does(database: Database, bisection: Bisection, then: Bisection) -> None:
    id = f"b{next(numbers)}"
    bisection, then = replace(bisection, id=id), replace(then, id=id)
    with database.transaction() as transaction:
        transaction.add_bisection(bisection)
    with database.transaction() as transaction:
        assert transaction.bisection(id) == bisection
        transaction.save_bisection(then)
    with database.transaction() as transaction:
        assert transaction.bisection(id) == then


@LAW
@given(probe=any_of(Probe), then=any_of(Probe))
def test_a_probe_does(database: Database, probe: Probe, then: Probe) -> None:
    number = next(numbers)
    same = {"id": f"p{number}", "bisection_id": "owner", "number": number}
    probe, then = replace(probe, **same), replace(then, **same)
    with database.transaction() as transaction:
        transaction.add_probe(probe)
    with database.transaction() as transaction:
        assert transaction.probe(probe.id) == probe
    with database.transaction() as transaction:
        transaction.save_probe(then)
    with database.transaction() as transaction:
        assert transaction.probe(probe.id) == then


@LAW
@given(build=any_of(Build), then=any_of(Build))
def test_a_build_does(database: Database, build: Build, then: Build) -> None:
    same = {"key": f"k{next(numbers)}", "bisection_id": "owner"}
    for one in (replace(build, **same), replace(then, **same)):
        with database.transaction() as transaction:
            transaction.save_build(one)
        with database.transaction() as transaction:
            assert transaction.build(one.key) == one


@LAW
@given(payload=st.dictionaries(text, json), topic=text, kind=text, at=times, node=any_of(Node))
def test_messages_events_and_nodes_do(
    database: Database, payload: dict[str, object], topic: str, kind: str, at: datetime, node: Node
) -> None:
    number = next(numbers)
    message, node = Message(topic, f"m{number}", payload), replace(node, name=f"n{number}")
    with database.transaction() as transaction:
        transaction.post(message, at)
        transaction.add_event("owner", at, kind, payload)
        transaction.save_node(node)
    with database.transaction() as transaction:
        assert transaction.undelivered() == (message,)
        transaction.delivered(message.key, at)
        event = transaction.events("owner", limit=100_000)[-1]
        assert (event.at, event.kind, event.data) == (at, kind, payload)
        assert node in transaction.nodes()
