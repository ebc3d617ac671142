"""The Transaction protocol, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import event, inspect, text
from sqlalchemy.exc import IntegrityError

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.adapters.database.rows import KEPT
from service.domain.bisection import Message
from service.domain.errors import NotFound
from service.domain.lifecycle import LIVE_PROBES, BisectionState, BuildState, ProbeState
from tests.adapters import samples
from tests.adapters.samples import T0, later, planned


@pytest.fixture
def engine(database_url: str):
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def database(engine) -> Iterator[Database]:
    yield Database(engine)


def test_every_field_of_a_kept_thing_is_a_column_of_its_table() -> None:
    extra = {"outbox": {"id", "posted_at", "delivered_at"}}
    for kind, table in KEPT.items():
        assert {field.name for field in fields(kind)} == set(table.c.keys()) - extra.get(table.name, set())


def test_everything_comes_back_as_it_was_put_in(database: Database) -> None:
    with database.transaction() as transaction:
        samples.fill(transaction)
    with database.transaction() as transaction:
        assert transaction.bisection("b1") == samples.bisection()
        assert transaction.bisections() == (samples.bisection(),)
        assert transaction.probe("b1-1") == samples.probe()
        assert transaction.probes("b1") == (samples.probe(),)
        assert transaction.build("key") == samples.build()
        assert transaction.undelivered() == (samples.MESSAGE,)
        assert transaction.nodes() == (samples.NODE,)
        (found,) = transaction.events("b1")
        assert (found.bisection_id, found.at, found.kind, found.data) == ("b1", T0, "probe judged", {"number": 1})


def test_what_is_not_there_is_named_in_the_error(database: Database) -> None:
    with database.transaction() as transaction:
        with pytest.raises(NotFound, match="no bisection 'b\\\\x009'") as caught:
            transaction.bisection("b\x009")
        assert (caught.value.status, caught.value.advice) == (404, "check the id; firstbad list shows all")
        with pytest.raises(NotFound, match="no probe 'p9'") as caught:
            transaction.probe("p9")
        assert "firstbad show ID --probes" in caught.value.advice
        with pytest.raises(NotFound):
            transaction.save_bisection(samples.fresh("b9"))
        with pytest.raises(NotFound):
            transaction.save_probe(samples.probe())
        assert transaction.build("k9") is None
        assert transaction.build("k9", lock=True) is None
        assert transaction.probes("b9") == transaction.events("b9") == ()


def test_bisections_come_newest_first_filtered_by_state_and_limited(database: Database) -> None:
    with database.transaction() as transaction:
        for number in range(5):
            state = BisectionState.FOUND if number % 2 else BisectionState.QUEUED
            transaction.add_bisection(replace(samples.fresh(f"b{number}", later(number)), state=state))
        assert [b.id for b in transaction.bisections()] == ["b4", "b3", "b2", "b1", "b0"]
        assert [b.id for b in transaction.bisections({BisectionState.FOUND})] == ["b3", "b1"]
        assert [b.id for b in transaction.bisections({BisectionState.FOUND, BisectionState.QUEUED}, limit=2)] == [
            "b4",
            "b3",
        ]
        assert transaction.bisections({BisectionState.FAILED}) == ()


def test_probes_come_by_number_within_a_bisection_and_oldest_first_across_them(database: Database) -> None:
    with database.transaction() as transaction:
        for id in ("b1", "b2"):
            transaction.add_bisection(samples.fresh(id))
        for bisection, number in (("b1", 10), ("b1", 2), ("b2", 5)):
            transaction.add_probe(planned(bisection, number))
        transaction.add_probe(planned("b2", 1, state=ProbeState.JUDGED))
        assert [probe.number for probe in transaction.probes("b1")] == [2, 10]
        assert [probe.id for probe in transaction.probes_in(LIVE_PROBES)] == ["b1-2", "b2-5", "b1-10"]
        assert transaction.probes_in(()) == ()


def test_only_probes_that_are_building_wait_for_a_build(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        transaction.add_probe(planned("b1", 1, state=ProbeState.BUILDING, build_key="k"))
        transaction.add_probe(planned("b1", 2, state=ProbeState.QUEUED, build_key="k"))
        transaction.add_probe(planned("b1", 3, state=ProbeState.BUILDING, build_key="other"))
        assert [probe.number for probe in transaction.probes_of_build("k")] == [1]


def test_two_probes_of_a_bisection_cannot_have_one_number(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        transaction.add_probe(planned("b1", 1))
    with pytest.raises(IntegrityError), database.transaction() as transaction:
        transaction.add_probe(planned("b1", 1, id="another"))


def test_a_probe_of_no_bisection_is_refused_by_the_database(database: Database) -> None:
    with pytest.raises(IntegrityError), database.transaction() as transaction:
        transaction.add_probe(planned("nobody", 1))


def test_a_saved_build_replaces_that_of_its_key(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        transaction.save_build(samples.build("a"))
        transaction.save_build(samples.build("b"))
        changed = replace(samples.build("a"), state=BuildState.QUEUED, log=None, attempt=2, queued_at=later(-9))
        transaction.save_build(changed)
        assert transaction.build("a") == changed
        assert transaction.builds_in({BuildState.QUEUED}) == (changed,)
        assert [build.key for build in transaction.builds_in(list(BuildState))] == ["a", "b"]


def test_events_come_in_order_after_an_id(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        transaction.add_bisection(samples.fresh("b2"))
        for number in range(6):
            transaction.add_event(f"b{number % 2 + 1}", T0, "step", {"number": number})
        first, second, third = transaction.events("b1")
        assert [first.data, second.data, third.data] == [{"number": 0}, {"number": 2}, {"number": 4}]
        assert transaction.events("b1", after=first.id, limit=1) == (second,)
        assert transaction.events("b1", after=third.id) == ()


def test_a_message_whose_key_is_there_is_not_posted_again_even_after_its_delivery(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.post(Message("t", "k1", {"n": 1}), T0)
        transaction.post(Message("t", "k1", {"n": 2}), T0)
        transaction.post(Message("t", "k0", {"n": 3}), later(-1))
        assert [message.payload["n"] for message in transaction.undelivered()] == [1, 3]
    with database.transaction() as transaction:
        transaction.delivered("k1", T0)
        transaction.delivered("k1", later(5))
        transaction.delivered("unheard of", T0)
        transaction.post(Message("t", "k1", {"n": 4}), T0)
        assert [message.key for message in transaction.undelivered()] == ["k0"]
        assert transaction.undelivered(limit=0) == ()


def test_a_node_is_added_once_and_then_changed(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.save_node(samples.NODE)
        transaction.save_node(replace(samples.NODE, state="drained", seen_at=later(9)))
        transaction.save_node(replace(samples.NODE, name="a"))
        assert [(node.name, node.state) for node in transaction.nodes()] == [("a", "up"), ("gpu-1", "drained")]


def test_an_exception_leaves_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction() as transaction:
        samples.fill(transaction)
        raise ZeroDivisionError
    with database.transaction() as transaction:
        assert transaction.bisections() == transaction.undelivered() == transaction.nodes() == ()
        assert transaction.build("key") is None


def test_times_of_any_zone_come_back_as_the_same_instant_in_utc(database: Database) -> None:
    at = datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1", at))
    with database.transaction() as transaction:
        found = transaction.bisection("b1").created_at
    assert found == at
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    with pytest.raises(Exception, match="without a zone"), database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1", datetime(2026, 1, 1)))  # noqa: DTZ001


def test_what_no_database_holds_as_text_becomes_a_replacement_character(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(replace(samples.fresh("b1"), notes=("\ud800 \x00",)))
        transaction.add_probe(planned("b1", 1, reason="log said \x00 \udcff!"))
    with database.transaction() as transaction:
        assert transaction.probe("b1-1").reason == "log said \ufffd \ufffd!"
        assert transaction.bisection("b1").notes == ("\ufffd \x00",)


def test_a_number_that_json_cannot_hold_is_refused_on_both_databases(database: Database) -> None:
    with pytest.raises(Exception, match="JSON"), database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        transaction.add_event("b1", T0, "metric", {"value": float("nan")})


def test_a_state_that_the_code_does_not_know_is_not_read_as_something_else(database: Database, engine) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE bisections SET state = 'dreaming'"))
    with pytest.raises(ValueError, match="dreaming"), database.transaction() as transaction:
        transaction.bisection("b1")


def test_a_save_writes_only_what_changed_and_nothing_when_nothing_did(database: Database, engine) -> None:
    with database.transaction() as transaction:
        samples.fill(transaction)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda c, cursor, sql, *rest: statements.append(sql))
    with database.transaction() as transaction:
        found = transaction.bisection("b1")
        transaction.save_bisection(found)
        transaction.save_bisection(replace(found, candidates_left=3))
        (probe,) = transaction.probes("b1")
        transaction.save_probe(replace(probe, reason="again"))
    updates = [sql for sql in statements if sql.startswith("UPDATE")]
    assert len(updates) == 2
    assert "candidates_left" in updates[0]
    assert "request" not in updates[0]
    assert "outcome" not in updates[1]


def test_a_read_of_many_probes_is_one_statement(database: Database, engine) -> None:
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
        for number in range(50):
            transaction.add_probe(planned("b1", number))
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda c, cursor, sql, *rest: statements.append(sql))
    with database.transaction() as transaction:
        assert len(transaction.probes("b1")) == 50
    assert len([sql for sql in statements if sql.startswith("SELECT")]) == 1


def test_what_the_flow_asks_for_is_answered_by_an_index(database: Database, engine) -> None:
    """On SQLite, whose planner says so without statistics."""
    if engine.dialect.name != "sqlite":
        assert {index["name"] for index in inspect(engine).get_indexes("probes")} >= {"ix_probes_state"}
        return
    asked: list[tuple[str, object]] = []
    event.listen(engine, "before_cursor_execute", lambda c, cursor, sql, given, *rest: asked.append((sql, given)))
    with database.transaction() as transaction:
        transaction.bisections({BisectionState.QUEUED})
        transaction.bisections()
        transaction.probes("b1")
        transaction.probes_in(LIVE_PROBES)
        transaction.probes_of_build("k")
        transaction.builds_in({BuildState.QUEUED})
        transaction.events("b1")
        transaction.undelivered()
    with engine.connect() as connection:
        for sql, given in [one for one in asked if one[0].startswith("SELECT")]:
            plan = " / ".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given))
            assert "INDEX" in plan, f"{sql}: {plan}"


def test_a_database_that_answers_is_no_trouble_and_one_that_does_not_is(database: Database) -> None:
    assert database.trouble() is None
    nowhere = Database(create_engine("postgresql://ada:secret@127.0.0.1:1/none"))
    said = nowhere.trouble() or ""
    assert "does not answer" in said
    assert "secret" not in said


def test_messages_that_were_delivered_long_ago_are_forgotten_in_batches_and_no_others(database: Database) -> None:
    with database.transaction() as transaction:
        for number in range(10):
            transaction.post(Message("build", f"m{number}", {}), T0)
        for number in (0, 1, 2, 3, 4, 6, 7):
            transaction.delivered(f"m{number}", T0)
    with database.transaction() as transaction:
        transaction.delivered("m8", later(60))
    told = []
    for _ in range(4):
        with database.transaction() as transaction:
            told.append(transaction.forget_delivered(later(60), 3))
    assert told == [3, 3, 1, 0]
    with database.transaction() as transaction:
        assert [message.key for message in transaction.undelivered()] == ["m5", "m9"]
        for number in range(10):
            transaction.post(Message("build", f"m{number}", {}), T0)
        again = [message.key for message in transaction.undelivered()]
    # What is kept is not posted again.
    assert sorted(again) == [f"m{number}" for number in range(10) if number != 8]
