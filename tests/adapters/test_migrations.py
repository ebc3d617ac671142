"""The schema's versions, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from service.adapters.database import migrate
from service.adapters.database.engine import BadDatabaseUrl, create_engine, parse_url
from service.adapters.database.repository import Database
from service.adapters.database.tables import Base
from service.adapters.database.types import to_json
from tests.adapters import samples


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
