"""Lists page by page, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.application.lists import Order, Page, Place, Sought, place_of
from service.domain.bisection import Bisection
from service.domain.lifecycle import BisectionState, BuildState
from tests.adapters import samples

NEWEST = Sought()
#: Without the letter whose small form depends on where it stands.
TEXTS = st.text(st.characters(exclude_characters="Σ", exclude_categories=["Cs"]), max_size=8)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    yield Database(engine)
    engine.dispose()


def kept(database: Database, *bisections: Bisection) -> None:
    with database.transaction() as tx:
        for bisection in bisections:
            tx.add_bisection(bisection)


def numbered(*seconds: int, **changes: object) -> list[Bisection]:
    made = [samples.bisection(f"b{place}", samples.later(at)) for place, at in enumerate(seconds)]
    return [replace(one, ended_at=None, **changes) for one in made]  # type: ignore[arg-type]


def page(database: Database, sought: Sought = NEWEST, after: Place | None = None, limit: int = 50) -> Page[Bisection]:
    with database.reading() as tx:
        return tx.page(sought, after=after, limit=limit)


def all_of(database: Database, sought: Sought, limit: int) -> list[str]:
    found: list[str] = []
    after, more = None, True
    while more:
        seen = page(database, sought, after, limit)
        found += [one.id for one in seen.items]
        assert len(seen.items) <= limit and (seen.items or not seen.more)
        after, more = place_of(seen.items[-1], sought.order) if seen.items else None, seen.more
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_show_each_once_in_its_order_also_those_of_the_same_time(database: Database, limit: int) -> None:
    kept(database, *numbered(5, 1, 1, 1, 3, 5))
    assert all_of(database, NEWEST, limit) == ["b5", "b0", "b4", "b3", "b2", "b1"]
    assert all_of(database, Sought(order=Order.OLDEST), limit) == ["b1", "b2", "b3", "b4", "b0", "b5"]


def test_what_is_added_between_two_pages_moves_nothing(database: Database) -> None:
    kept(database, *numbered(1, 2, 3, 4))
    first = page(database, limit=2)
    kept(database, *[samples.bisection(f"new{at}", samples.later(at)) for at in (5, 6)])
    second = page(database, after=place_of(first.items[-1], Order.NEWEST), limit=2)
    assert [one.id for one in (*first.items, *second.items)] == ["b3", "b2", "b1", "b0"] and not second.more


def test_by_the_end_only_what_has_ended_is_there(database: Database) -> None:
    made = numbered(1, 2, 3)
    kept(database, replace(made[0], ended_at=samples.later(30)), replace(made[1], ended_at=samples.later(20)), made[2])
    assert all_of(database, Sought(order=Order.ENDED_LAST), 1) == ["b0", "b1"]
    assert all_of(database, Sought(order=Order.ENDED_FIRST), 1) == ["b1", "b0"]


def test_filters_go_together(database: Database) -> None:
    kinds = list(permutations(["x", "y"]))
    made = numbered(*range(4), words="vllm serve 100%_sure\nmain", state=BisectionState.FOUND)
    made = [replace(one, project=kinds[n % 2][0], submitter=kinds[n // 2][0]) for n, one in enumerate(made)]
    kept(database, *made)
    assert all_of(database, Sought(project="x"), 3) == ["b2", "b0"]
    assert all_of(database, Sought(project="x", submitter="y"), 3) == ["b2"]
    assert all_of(database, Sought(states=frozenset({BisectionState.FAILED})), 3) == []
    assert all_of(database, Sought(states=frozenset({BisectionState.FOUND}), project="y", submitter="x"), 3) == ["b1"]


@pytest.mark.parametrize(
    ("text", "count"), [("100%", 1), ("VLLM", 1), ("%", 1), ("_", 1), ("a%b", 0), ("\\", 0), ("\0", 0)]
)
def test_a_text_is_looked_for_as_it_is_written(database: Database, text: str, count: int) -> None:
    made = numbered(1, 2)
    kept(database, replace(made[0], words="vllm serve 100%_sure"), replace(made[1], words="axxb"))
    assert len(all_of(database, Sought(text=text), 5)) == count


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, words=TEXTS)
def test_whatever_is_looked_for_is_found_where_it_stands(database: Database, text: str, words: str) -> None:
    with database.transaction() as tx:
        id = f"h{len(tx.bisections(limit=10_000))}"
        tx.add_bisection(replace(samples.bisection(id), words=f"{words}{text}{words}".lower()))
    assert id in all_of(database, Sought(text=text), 1000)


def test_probes_go_by_number_and_builds_by_their_time(database: Database) -> None:
    with database.transaction() as tx:
        tx.add_bisection(samples.bisection("b1"))
        for number in (1, 2, 3):
            tx.add_probe(samples.planned("b1", number, build_key=f"k{number}"))
            tx.save_build(replace(samples.build(f"k{number}"), queued_at=samples.later(number % 2)))
        for name in ("n2", "n1"):
            tx.save_node(replace(samples.NODE, name=name))
    with database.reading() as tx:
        assert [probe.number for probe in tx.probe_page("b1", after=1, limit=1).items] == [2]
        assert tx.probe_page("b1", after=1, limit=1).more and not tx.probe_page("b1", after=2, limit=1).more
        newest = tx.build_page(limit=2)
        assert ([build.key for build in newest.items], newest.more) == (["k3", "k1"], True)
        last = newest.items[-1]
        assert [build.key for build in tx.build_page(after=(last.queued_at, last.key)).items] == ["k2"]
        assert [build.key for build in tx.build_page(bisection_id="b1").items] == ["k2", "k1", "k3"]
        assert tx.build_page({BuildState.FAILED}).items == tx.build_page(bisection_id="b2").items == ()
        assert [node.name for node in tx.node_page(after="n1").items] == ["n2"]


def test_what_happened_to_all_comes_by_id(database: Database) -> None:
    with database.transaction() as tx:
        assert (tx.last_event(), tx.last_event("b1")) == (0, 0)
        for id in ("b1", "b2"):
            tx.add_bisection(samples.bisection(id))
            tx.add_event(id, samples.T0, "state", {"state": id})
    with database.reading() as tx:
        first, second = tx.happened(after=0, limit=10)
        assert (first.bisection_id, second.bisection_id) == ("b1", "b2")
        assert (tx.last_event("b1"), tx.last_event()) == (first.id, second.id)
        assert tx.happened(after=first.id, limit=10) == (second,) and tx.happened(after=0, limit=1) == (first,)


def test_who_reads_waits_for_no_writer_and_keeps_none_waiting(database: Database) -> None:
    kept(database, *numbered(1))
    with database.transaction() as writing:
        writing.save_bisection(replace(writing.bisection("b0", lock=True), words="written"))
        writing.flush()
        with database.reading() as reading:
            assert reading.bisection("b0").words != "written"
    with database.reading() as reading:
        assert reading.bisection("b0").words == "written"
        kept(database, samples.bisection("b9"))
