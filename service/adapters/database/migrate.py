"""The schema's version: what it is, what it should be, and the way between, by Alembic with the migrations/ folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, inspect, select
from sqlalchemy.exc import OperationalError

from service.adapters.database.engine import create_engine, parse_url, shown
from service.adapters.database.rows import BEATS
from service.application.health import SILENT_S

#: Installed beside the package `service`.
MIGRATIONS = Path(__file__).resolve().parents[3] / "migrations"

#: Of the PostgreSQL advisory lock that lets one upgrade run at a time; any fixed number that is ours.
_LOCK = 0x66697273
#: Whoever upgrades at the same time is waited for.
BUSY_TIMEOUT_S = 120.0
BASE = "base"
#: Alembic hands its context to env.py through module globals.
_one_at_a_time = threading.Lock()


class WrongSchema(RuntimeError):
    """The database's schema is not the one that this code works with; the message says what to do."""


class DatabaseUnavailable(RuntimeError):
    """The database cannot be reached or written now; the message says which and why."""


@dataclass(frozen=True)
class Step:
    """One version, and what it brought."""

    revision: str
    what: str


@dataclass(frozen=True)
class Moved:
    """From which version to which; None is an empty database. `steps`: what was done or undone, in that order."""

    before: str | None
    after: str | None
    steps: tuple[Step, ...]


def told(version: str | None) -> str:
    return f"at version {version}" if version is not None else "empty"


def head() -> str:
    """The version that this code works with."""
    found = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert found is not None
    return found


def current(url: str) -> str | None:
    """The version of the database, None for an empty one. Errors: BadDatabaseUrl, DatabaseUnavailable."""
    parsed = parse_url(url)
    if parsed.drivername == "sqlite" and not Path(str(parsed.database)).exists():
        # To connect would make the file.
        return None
    with _reached(url), _engine(url) as engine, engine.connect() as connection:
        return version_of(connection)


def check(url: str) -> None:
    """Errors: WrongSchema unless the database has exactly the version that this code works with."""
    check_version(current(url))


def check_version(found: str | None) -> None:
    """Of a database; None is that of an empty one. Errors: as of check."""
    _refuse_newer(found)
    if found != head():
        advice = "`firstbad db upgrade` upgrades it, and so does `firstbad up`"
        raise WrongSchema(f"the database is {told(found)}, this code needs version {head()}: {advice}")


def upgrade(url: str) -> Moved:
    """To the newest version. Two at once do it once.

    Errors: BadDatabaseUrl; WrongSchema for a database newer than this code; DatabaseUnavailable.
    """
    return _migrate(url, lambda config, found: command.upgrade(config, "head"))


def downgrade(url: str, version: str) -> Moved:
    """Back to an older version; `base` takes everything away. Errors: as upgrade."""

    def work(config: Config, found: str | None) -> None:
        _undone(found, version)
        command.downgrade(config, version)

    return _migrate(url, work)


def back(url: str, version: str) -> tuple[Step, ...]:
    """What a downgrade to this version would undo, in that order. Errors: as upgrade."""
    found = current(url)
    _refuse_newer(found)
    return _undone(found, version)


def control_workers(url: str, now: datetime) -> tuple[str, ...]:
    """Those of a service that works with the database now. Errors: as current."""
    if current(url) is None:
        return ()
    with _reached(url), _engine(url) as engine, engine.connect() as connection:
        if not inspect(connection).has_table(BEATS.name):
            return ()
        alive = select(BEATS.c.name).where(BEATS.c.at > now - timedelta(seconds=SILENT_S)).order_by(BEATS.c.name)
        return tuple(connection.scalars(alive))


def _undone(found: str | None, version: str) -> tuple[Step, ...]:
    """Errors: WrongSchema, for what is no older version."""
    revisions = [step.revision for step in _steps()]
    if version != BASE and version not in revisions:
        raise WrongSchema(f"there is no version {version!r:.80}: known are {BASE}, {', '.join(revisions)}")
    at, to = (revisions.index(one) + 1 if one in revisions else 0 for one in (found, version))
    if to > at:
        raise WrongSchema(
            f"the database is {told(found)}, which is older than {version}: it can be upgraded, to {head()}"
        )
    return _steps()[to:at][::-1]


def _steps() -> tuple[Step, ...]:
    """Oldest first."""
    found = [*ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
    return tuple(Step(one.revision, (one.doc or "").partition("\n")[0]) for one in found)


def _moved(before: str | None, after: str | None) -> Moved:
    revisions = [None, *(step.revision for step in _steps())]
    low, high = sorted((revisions.index(before), revisions.index(after)))
    steps = _steps()[low:high]
    return Moved(before, after, steps if revisions.index(after) == high else steps[::-1])


def _migrate(url: str, work: Callable[[Config, str | None], None]) -> Moved:
    # With foreign keys on, SQLite takes the rebuilding of a table for the deletion of what others refer to.
    quiet = _engine(url, foreign_keys=False, busy_timeout_s=BUSY_TIMEOUT_S)
    with _reached(url), quiet as engine, _one_at_a_time, engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        before = version_of(connection)
        _refuse_newer(before)
        work(_config(connection), before)
        _check_foreign_keys(connection)
        return _moved(before, version_of(connection))


@contextmanager
def _engine(url: str, **options: Any) -> Iterator[Engine]:
    engine = create_engine(url, plain_json=True, **options)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _reached(url: str) -> Iterator[None]:
    """Errors: DatabaseUnavailable."""
    try:
        yield
    except OperationalError as error:
        raise DatabaseUnavailable(f"{shown(url)}: {str(error.orig).strip()}") from error
    except OSError as error:
        raise DatabaseUnavailable(f"{shown(url)}: {(error.strerror or str(error)).lower()}") from error


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
