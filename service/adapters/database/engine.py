"""An engine for a database URL: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import weakref
from pathlib import Path
from time import monotonic
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from service.adapters.database.types import to_json

BUSY_TIMEOUT_S = 10
#: For libpq: a server that went away without a word is noticed in seconds, and not when the kernel gives it up.
NOTICED = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
#: The option of a connection that only reads.
READING = "firstbad_reading"
#: Of one process to PostgreSQL, at most.
CONNECTIONS = 15
#: A class of PostgreSQL's errors.
BEYOND_LIMITS = "54"
#: A connection that has been idle for so long is tried before it is used: the server may have been restarted.
IDLE_S = 1.0


class BadDatabaseUrl(ValueError):
    """The database URL in the settings cannot be used."""


def create_engine(
    url: str, *, foreign_keys: bool = True, busy_timeout_s: float = BUSY_TIMEOUT_S, plain_json: bool = False
) -> Engine:
    """`foreign_keys` off is for migrations that rebuild tables on SQLite. `plain_json`: JSON is read into lists and
    dicts, where it is not `types.Json` that reads it. Errors: BadDatabaseUrl."""
    parsed = parse_url(url)
    options: dict[str, Any] = {"json_serializer": to_json, **({} if plain_json else {"json_deserializer": _text})}
    if parsed.drivername == "sqlite":
        engine = _sqlite(parsed, foreign_keys, busy_timeout_s, options)
    else:
        engine = _postgresql(parsed, options)
    _forget_connections_in_children(engine)
    return engine


def for_reading(engine: Engine) -> Engine:
    """The same connections, for transactions that write nothing. On PostgreSQL, where each statement sees what is
    committed by then anyway, they are no transactions there: BEGIN and COMMIT would be two round trips more."""
    at_once = {"isolation_level": "AUTOCOMMIT"} if engine.dialect.name == "postgresql" else {}
    return engine.execution_options(**{READING: True}, **at_once)


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
    # Drivers also say OperationalError of a mistake in a statement, and of what is beyond a limit of the server.
    wrong = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    wrong = wrong or (getattr(error.orig, "sqlstate", None) or "").startswith(BEYOND_LIMITS)
    return error.connection_invalidated or (isinstance(error, OperationalError) and not wrong)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


def _postgresql(url: URL, options: dict[str, Any]) -> Engine:
    # As many as there may be stay open: to open one takes longer than what most transactions do with it.
    engine = sqlalchemy.create_engine(url, pool_size=CONNECTIONS, max_overflow=0, connect_args=NOTICED, **options)

    @event.listens_for(engine, "checkin")
    def checkin(_: Any, record: ConnectionPoolEntry) -> None:
        record.info["idle_since"] = monotonic()

    @event.listens_for(engine, "checkout")
    def checkout(connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
        # To ask each time is a fifth of what a short transaction says to the server.
        since = record.info.get("idle_since")
        if since is None or monotonic() - since < IDLE_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            # None that is older is any good either.
            raise InvalidatePoolError(str(error)) from error

    return engine


def _sqlite(url: URL, foreign_keys: bool, busy_timeout_s: float, options: dict[str, Any]) -> Engine:
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = sqlalchemy.create_engine(url, connect_args={"timeout": busy_timeout_s}, **options)

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        # The driver would begin a deferred transaction, whose upgrade to a writer fails at once when another writes.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Who only reads sees the database as it was at its first question, beside whoever writes.
        reading = connection.get_execution_options().get(READING)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _forget_connections_in_children(engine: Engine) -> None:
    """A forked child (a Celery pool) must not talk on its parent's connections."""
    reference = weakref.ref(engine)

    def forget() -> None:
        if (inherited := reference()) is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=forget)
