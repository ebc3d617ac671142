"""An engine for a database URL: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import weakref
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.adapters.database.types import to_json

BUSY_TIMEOUT_S = 10


class BadDatabaseUrl(ValueError):
    """The database URL in the settings cannot be used."""


def create_engine(url: str, *, foreign_keys: bool = True, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Engine:
    """`foreign_keys` off is for migrations that rebuild tables on SQLite. Errors: BadDatabaseUrl."""
    parsed = parse_url(url)
    engine = _sqlite(parsed, foreign_keys, busy_timeout_s) if parsed.drivername == "sqlite" else _postgresql(parsed)
    _forget_connections_in_children(engine)
    return engine


def parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadDatabaseUrl("the database URL cannot be read; sqlite:////path/to/file or postgresql://…") from None
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite") and parsed.database not in (None, "", ":memory:"):
        return parsed.set(drivername="sqlite")
    raise BadDatabaseUrl(f"{shown(url)}: use sqlite:////path/to/file or postgresql://user@host/name")


def shown(url: str) -> str:
    """Without its password."""
    return make_url(url).render_as_string(hide_password=True)


def will_pass(error: Exception) -> bool:
    """Whether the same may work later: what is locked, full or away, not what is wrong."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeout)
    # SQLite's driver also says OperationalError of a mistake in a statement.
    wrong = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    return error.connection_invalidated or (isinstance(error, OperationalError) and not wrong)


def _postgresql(url: URL) -> Engine:
    return sqlalchemy.create_engine(url, pool_pre_ping=True, json_serializer=to_json)


def _sqlite(url: URL, foreign_keys: bool, busy_timeout_s: float) -> Engine:
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = sqlalchemy.create_engine(url, json_serializer=to_json, connect_args={"timeout": busy_timeout_s})

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        # The driver would begin a deferred transaction, whose upgrade to a writer fails at once when another writes.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _forget_connections_in_children(engine: Engine) -> None:
    """A forked child (a Celery pool) must not talk on its parent's connections."""
    reference = weakref.ref(engine)

    def forget() -> None:
        if (inherited := reference()) is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=forget)
