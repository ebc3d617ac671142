"""What the database says, read past the service, which may be down."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import psycopg
import psycopg.rows

T = TypeVar("T")
Row = dict[str, Any]
TABLES = ("bisections", "probes", "builds", "events", "outbox", "nodes")
#: Seconds that a database may be away.
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Books:
    """`url`: as the service has it."""

    url: str
    _pause: threading.Event = field(default_factory=threading.Event)

    def rows(self, query: str) -> list[Row]:
        """Waits until the database answers. Errors: those of its driver, when that takes too long."""
        read = self._sqlite if self.url.startswith("sqlite") else self._postgresql
        return self._patiently(lambda: read(query))

    def one(self, query: str) -> Any:
        """The only value of the only row."""
        (row,) = self.rows(query)
        (value,) = row.values()
        return value

    def live(self) -> int:
        """Bisections that have not ended."""
        ended = "('found', 'suspects', 'refused', 'failed', 'cancelled')"
        return int(self.one(f"SELECT count(*) AS n FROM bisections WHERE state NOT IN {ended}"))

    def verdicts(self) -> int:
        return int(self.one("SELECT count(*) AS n FROM events WHERE kind = 'verdict'"))

    def dump(self) -> str:
        """All of it, a row a line."""
        lines = []
        for table in TABLES:
            order = "id" if table in ("bisections", "probes", "events", "outbox") else "1"
            for row in self.rows(f"SELECT * FROM {table} ORDER BY {order}"):
                lines.append(json.dumps({"table": table, **row}, default=str))
        return "\n".join(lines) + "\n"

    def _patiently(self, read: Callable[[], T]) -> T:
        give_up = monotonic() + PATIENCE_S
        while True:
            try:
                return read()
            except (psycopg.OperationalError, sqlite3.OperationalError):
                if monotonic() > give_up:
                    raise
                self._pause.wait(0.2)

    def _sqlite(self, query: str) -> list[Row]:
        path = self.url.removeprefix("sqlite:///")
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10.0)
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]
        finally:
            connection.close()

    def _postgresql(self, query: str) -> list[Row]:
        with psycopg.connect(self.url, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]


def parsed(value: Any) -> Any:
    """Of a JSON column, which one database gives as text."""
    return json.loads(value) if isinstance(value, str) else value
