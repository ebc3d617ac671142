"""The schema's versions, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, inspect, null, text
from sqlalchemy import create_engine as create_sqlalchemy_engine

from service.adapters.database import migrate
from service.adapters.database.engine import BadDatabaseUrl, create_engine, parse_url
from service.adapters.database.repository import Database
from service.adapters.database.tables import Base
from service.adapters.database.types import to_json
from service.domain.figures import Beat
from tests.adapters import kept_rows, samples


@pytest.fixture
def upgraded(database_url: str) -> Iterator[str]:
    migrate.upgrade(database_url)
    yield database_url


def test_migrations_make_exactly_what_the_models_say(upgraded: str) -> None:
    engine = create_engine(upgraded)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_a_table_made_from_the_models_has_the_same_sql_as_a_migrated_one(tmp_path) -> None:
    """compare_metadata overlooks partial indexes, AUTOINCREMENT and names of keys; SQLite's own text holds all."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("models", "migrations")]
    Base.metadata.create_all(create_engine(urls[0]))
    migrate.upgrade(urls[1])
    models, migrations = (_definitions(url) for url in urls)
    assert models == migrations


def test_an_empty_database_has_no_version_and_an_upgraded_one_the_newest(database_url: str) -> None:
    assert migrate.current(database_url) is None
    migrate.upgrade(database_url)
    migrate.upgrade(database_url)
    assert migrate.current(database_url) == migrate.head()
    migrate.check(database_url)


def test_an_old_database_is_refused_with_what_to_run(database_url: str) -> None:
    with pytest.raises(migrate.WrongSchema, match="firstbad up"):
        migrate.check(database_url)


def test_a_database_newer_than_the_code_is_refused_and_left_alone(upgraded: str) -> None:
    engine = create_engine(upgraded)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for refused in (migrate.upgrade, migrate.check, lambda url: migrate.downgrade(url, "base")):
        with pytest.raises(migrate.WrongSchema, match="9999.*newer firstbad"):
            refused(upgraded)
    assert migrate.current(upgraded) == "9999"
    engine.dispose()


def test_downgrade_works_on_tables_that_hold_rows_and_upgrade_again_after_it(upgraded: str) -> None:
    engine = create_engine(upgraded)
    with Database(engine).transaction() as transaction:
        samples.fill(transaction)
    migrate.downgrade(upgraded, "base")
    assert set(inspect(engine).get_table_names()) <= {"alembic_version"}
    migrate.upgrade(upgraded)
    with Database(engine).transaction() as transaction:
        assert transaction.bisections() == ()
        samples.fill(transaction)
    engine.dispose()


#: As outcomes were kept before 0004, and as they are since: a number, what was wrong with one, and neither.
SAMPLED = (
    {"ended_in": "check", "samples": [2.5], "environment": {"metric": "2 matches, of which the last counts"}},
    {"ended_in": "check", "samples": [], "environment": {"metric": "nothing matches", "node": "n"}},
    {"ended_in": "check", "samples": [], "environment": {}},
)
MEASURED = tuple(
    {"ended_in": "check", "environment": environment, "measurements": measurements}
    for environment, measurements in (
        (SAMPLED[0]["environment"], [{"name": "metric", "value": 2.5, "unit": "", "found": 1, "problem": ""}]),
        ({"node": "n"}, [{"name": "metric", "value": None, "unit": "", "found": 0, "problem": "nothing matches"}]),
        ({}, []),
    )
)


def _rows(outcomes: tuple[dict[str, object], ...]) -> dict[str, object]:
    """An outcome with a control, and faults with one and without."""
    first, second, third = outcomes
    faults = [{"kind": "a", "message": "m", "outcome": {**third, "control": first}}, {"kind": "b", "message": "m"}]
    return {"outcome": {**first, "control": second}, "faults": faults}


def test_samples_become_measurements_wherever_outcomes_lie_and_back(upgraded: str) -> None:
    engine = create_engine(upgraded)
    with Database(engine).transaction() as transaction:
        samples.fill(transaction)
    migrate.downgrade(upgraded, "0003")
    old, new = _rows(SAMPLED), _rows(MEASURED)
    tables = {"probes": ("outcome", "faults"), "builds": ("failure", "faults")}
    with engine.begin() as connection:
        for table, columns in tables.items():
            values = {name: to_json(old[kept]) for name, kept in zip(columns, ("outcome", "faults"), strict=True)}
            assert "samples" in str(connection.execute(text(f"SELECT {columns[0]} FROM {table}")).one())
            connection.execute(text(f"UPDATE {table} SET {columns[0]} = :{columns[0]}, faults = :faults"), values)

    def kept() -> list[object]:
        with engine.connect() as connection:
            found = [connection.execute(text(f"SELECT {', '.join(tables[name])} FROM {name}")).one() for name in tables]
        return [json.loads(value) if isinstance(value, str) else value for row in found for value in row]

    for _ in range(2):
        migrate.upgrade(upgraded)
        assert kept() == [new["outcome"], new["faults"]] * 2
        with Database(engine).transaction() as transaction:
            (probe,) = transaction.probes("b1")
            assert probe.outcome is not None and probe.outcome.measurements[0].value == 2.5
        migrate.downgrade(upgraded, "0003")
        assert kept() == [old["outcome"], old["faults"]] * 2
    engine.dispose()


def test_each_revision_has_rows_to_try_it_on() -> None:
    found = [script.revision for script in ScriptDirectory(str(migrate.MIGRATIONS)).walk_revisions()]
    assert tuple(reversed(found)) == kept_rows.REVISIONS


def _stored(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    """All rows, as the schema that is there has them."""
    metadata = MetaData()
    metadata.reflect(engine)
    with engine.connect() as connection:
        return {
            name: [dict(row) for row in connection.execute(table.select().order_by(*table.primary_key)).mappings()]
            for name, table in metadata.tables.items()
            if name != "alembic_version"
        }


def _put(engine: Engine, rows: dict[str, list[dict[str, Any]]]) -> None:
    metadata = MetaData()
    metadata.reflect(engine)
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            if table.name in rows:
                assert {column.name for column in table.columns} == rows[table.name][0].keys(), table.name
                for row in rows[table.name]:
                    connection.execute(table.insert().values(_plain(engine, row)))


def _plain(engine: Engine, row: dict[str, Any]) -> dict[str, Any]:
    """SQLite keeps no zone; what is JSON and nothing is NULL, as our own types have it."""
    sqlite = engine.dialect.name == "sqlite"
    found = {k: v.replace(tzinfo=None) if sqlite and isinstance(v, datetime) else v for k, v in row.items()}
    return {k: null() if v is None else v for k, v in found.items()}


@pytest.mark.parametrize("revision", kept_rows.REVISIONS)
def test_what_each_revision_kept_is_there_after_an_upgrade_and_a_downgrade(database_url: str, revision: str) -> None:
    migrate.upgrade(database_url)
    if revision != migrate.head():
        migrate.downgrade(database_url, revision)
    engine = create_sqlalchemy_engine(parse_url(database_url))
    _put(engine, kept_rows.rows(revision))
    before = _stored(engine)
    engine.dispose()
    for _ in range(2):
        migrate.upgrade(database_url)
        _check_read(database_url, revision)
        if revision != migrate.head():
            migrate.downgrade(database_url, revision)
        assert _stored(engine) == before
        engine.dispose()


def _check_read(url: str, revision: str) -> None:
    """As today's code reads it."""
    engine = create_engine(url)
    with Database(engine).transaction() as tx:
        (found,), (judged, queued, running), (made, building) = (
            tx.bisections(),
            tx.probes("b1"),
            (tx.build("k1"), tx.build("k2")),
        )
        nodes, events, messages = tx.nodes(), tx.events("b1"), tx.undelivered()
    engine.dispose()
    kept = kept_rows.rows(revision)
    assert (found.state, found.good_shas, found.created_at) == ("searching", (kept_rows.SHA,), kept_rows.AT)
    assert (found.request.reproduction.script, found.request.timeout_s) == ("make test", 12.5)
    assert judged.outcome is not None and judged.faults[0].outcome is not None
    assert judged.outcome == judged.faults[0].outcome
    assert [measured.value for measured in judged.outcome.measurements] == [2.5]
    assert (judged.verdict, judged.attempt, queued.state, running.state) == ("bad", 2, "queued", "running")
    assert made is not None and building is not None
    assert (made.wheel_bytes, made.log and made.log.path, building.state) == (
        5 * 2**30,
        kept_rows.LOG["path"],
        "queued",
    )
    assert (events[0].id, messages[0].key, nodes[0].facts) == (7, "probe:b1.2:1", {"docker": "28"})
    assert nodes[0].roles == (("run",) if revision >= "0002" else ("build", "run"))
    assert nodes[0].out == kept["nodes"][0].get("out", "")
    assert (judged.own_day, judged.target) == (revision >= "0003", "n1" if revision >= "0003" else None)
    assert (found.priority, found.paused_s) == (("high", 5.5) if revision >= "0005" else ("normal", 0.0))
    assert (queued.held, judged.gpu_leased_s) == ((True, 4.5) if revision >= "0005" else (False, 0.0))
    # What was queued had been sent, and is not sent again at once.
    assert queued.sent_at == queued.queued_at and running.sent_at is not None and building.sent_at is not None
    own, gpus = ("node.n1", "gpu.h100") if revision >= "0003" else ("cpu", "cpu")
    assert (queued.queue, running.queue) == (gpus if revision >= "0005" else own, gpus)
    assert (found.project, found.words.partition("\n")[0]) == ("python", "engine" if revision >= "0007" else "python")
    assert (found.budget.probes, len(found.overrides)) == ((30, 1) if revision >= "0007" else (None, 0))
    assert queued.turn == ("0 ada" if revision >= "0005" else "1 ada")


def test_an_upgrade_says_from_where_to_where_and_a_second_one_does_nothing(database_url: str) -> None:
    moved = migrate.upgrade(database_url)
    assert (moved.before, moved.after) == (None, migrate.head())
    assert [step.revision for step in moved.steps] == list(kept_rows.REVISIONS)
    assert all(step.what.endswith(".") for step in moved.steps)
    assert migrate.upgrade(database_url).steps == ()
    back = migrate.back(database_url, "0003")
    moved = migrate.downgrade(database_url, "0003")
    assert (moved.before, moved.after, moved.steps) == (migrate.head(), "0003", back)
    assert [step.revision for step in back] == list(reversed(kept_rows.REVISIONS[3:]))
    assert migrate.downgrade(database_url, "base").after is None


@pytest.mark.parametrize(
    ("version", "said"), [("0005", "older than 0005"), ("9999", "no version '9999': known are base")]
)
def test_a_downgrade_to_what_is_no_older_version_is_refused(database_url: str, version: str, said: str) -> None:
    migrate.upgrade(database_url)
    migrate.downgrade(database_url, "0003")
    for refused in (migrate.back, migrate.downgrade):
        with pytest.raises(migrate.WrongSchema, match=said):
            refused(database_url, version)
    assert migrate.current(database_url) == "0003"


def test_to_look_at_a_database_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert migrate.current(f"sqlite:///{tmp_path}/a/b.db") is None
    assert migrate.control_workers(f"sqlite:///{tmp_path}/a/b.db", kept_rows.AT) == ()
    assert not (tmp_path / "a").exists()


def test_who_works_with_a_database_is_told_for_half_a_minute(database_url: str) -> None:
    assert migrate.control_workers(database_url, kept_rows.AT) == ()
    migrate.upgrade(database_url)
    now = kept_rows.AT
    engine = create_engine(database_url)
    with Database(engine).transaction() as tx:
        for name, age_s in (("control@new", 20), ("control@old", 40)):
            tx.save_beat(Beat(name, now - timedelta(seconds=age_s), now, now, 5.0, 8))
    engine.dispose()
    assert migrate.control_workers(database_url, now) == ("control@new",)


def test_a_database_that_is_away_is_told_without_its_password() -> None:
    url = "postgresql://u:secret@127.0.0.1:1/d"
    for asked in (migrate.current, migrate.upgrade, migrate.check, lambda url: migrate.downgrade(url, "base")):
        with pytest.raises(migrate.DatabaseUnavailable, match="u:\\*\\*\\*@127.0.0.1:1/d: .*refused") as caught:
            asked(url)
        assert "secret" not in str(caught.value)


def test_three_processes_that_upgrade_at_once_make_one_schema(database_url: str) -> None:
    program = "import sys; from service.adapters.database.migrate import upgrade; upgrade(sys.argv[1])"
    started = [
        subprocess.Popen([sys.executable, "-c", program, database_url], stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    migrate.check(database_url)


def test_a_migration_that_fails_leaves_nothing_of_itself(database_url: str) -> None:
    """The last table of the first version is there already, so the version fails at its end."""
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE nodes (name TEXT)"))
    with pytest.raises(Exception, match="nodes"):  # noqa: B017 each driver has its own
        migrate.upgrade(database_url)
    assert migrate.current(database_url) is None
    assert "bisections" not in inspect(engine).get_table_names()
    engine.dispose()


@pytest.mark.parametrize(
    "url", ["mysql://a:secret@b/c", "sqlite://", "sqlite:///:memory:", "nonsense", "postgresql+asyncpg://a:secret@b/c"]
)
def test_other_database_urls_are_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(BadDatabaseUrl, match="sqlite:////path/to/file") as caught:
        create_engine(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_a_postgresql_url_gets_the_same_driver(scheme: str) -> None:
    assert parse_url(f"{scheme}://u@h/d").drivername == "postgresql+psycopg"


def _definitions(url: str) -> dict[str, set[str]]:
    """Per table or index, the parts of its SQL; constraints may stand in another order."""
    with create_engine(url).connect() as connection:
        found = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        rows = {name: sql for name, sql in found if not name.startswith(("alembic", "sqlite_"))}
    return {name: {part.strip(" \n,)(") for part in sql.replace('"', "").split("\n")} for name, sql in rows.items()}
