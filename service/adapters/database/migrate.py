"""The schema's version: what it is, what it should be, and the way between, by Alembic with the migrations/ folder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import OperationalError

from service.adapters.database.engine import create_engine, shown

#: Installed beside the package `service`.
MIGRATIONS = Path(__file__).resolve().parents[3] / "migrations"

#: Of the PostgreSQL advisory lock that lets one upgrade run at a time; any fixed number that is ours.
_LOCK = 0x66697273
#: Whoever upgrades at the same time is waited for.
BUSY_TIMEOUT_S = 120.0
#: Alembic hands its context to env.py through module globals.
_one_at_a_time = threading.Lock()


class WrongSchema(RuntimeError):
    """The database's schema is not the one that this code works with; the message says what to do."""


class DatabaseUnavailable(RuntimeError):
    """The database cannot be reached or written now; the message says which and why."""


def head() -> str:
    """The version that this code works with."""
    found = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert found is not None
    return found


def current(url: str) -> str | None:
    """The version of the database, None for an empty one."""
    engine = create_engine(url, plain_json=True)
    with engine.connect() as connection:
        found = version_of(connection)
    engine.dispose()
    return found


def check(url: str) -> None:
    """Errors: WrongSchema unless the database has exactly the version that this code works with."""
    check_version(current(url))


def check_version(found: str | None) -> None:
    """Of a database; None is that of an empty one. Errors: as of check."""
    _refuse_newer(found)
    if found != head():
        is_ = f"at version {found}" if found is not None else "empty"
        raise WrongSchema(f"the database is {is_}, this code needs version {head()}: `firstbad up` upgrades it")


def upgrade(url: str) -> None:
    """To the newest version. Two at once do it once.

    Errors: BadDatabaseUrl; WrongSchema for a database newer than this code; DatabaseUnavailable.
    """
    try:
        _migrate(url, lambda config: command.upgrade(config, "head"))
    except OperationalError as error:
        raise DatabaseUnavailable(f"{shown(url)}: {error.orig}") from error


def downgrade(url: str, version: str) -> None:
    """Back to an older version; `base` takes everything away. Errors: as upgrade."""
    _migrate(url, lambda config: command.downgrade(config, version))


def _migrate(url: str, work: Callable[[Config], None]) -> None:
    # With foreign keys on, SQLite takes the rebuilding of a table for the deletion of what others refer to.
    engine = create_engine(url, foreign_keys=False, busy_timeout_s=BUSY_TIMEOUT_S, plain_json=True)
    try:
        with _one_at_a_time, engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            _refuse_newer(version_of(connection))
            work(_config(connection))
            _check_foreign_keys(connection)
    finally:
        engine.dispose()


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def version_of(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_newer(version: str | None) -> None:
    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if version is not None and version not in known:
        raise WrongSchema(
            f"the database is at version {version}, which this code does not know (it knows up to {head()}): "
            "a newer firstbad has upgraded it. Install that version, or let it downgrade the database first."
        )


def _check_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise WrongSchema("the migration would leave rows that refer to nothing; it was undone")
