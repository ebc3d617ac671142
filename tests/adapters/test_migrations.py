"""The schema's versions, on both databases."""

from __future__ import annotations

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
