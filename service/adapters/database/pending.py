"""What a transaction has to write, held back until it is asked something or ends: several changes of a row are one
statement then, and so are all events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, Dialect, Executable, Table, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from service.adapters.database.rows import BISECTIONS, BUILDS, EVENTS, OUTBOX, PROBES

Values = dict[str, Any]
_KEYS = {BISECTIONS: BISECTIONS.c.id, PROBES: PROBES.c.id, BUILDS: BUILDS.c.key}
#: A bisection is added before its probes, in one transaction too.
_INSERTS = {table: insert(table).inline() for table in (BISECTIONS, PROBES)}
_EVENTS = insert(EVENTS).inline()
_UPDATES = {table: update(table).where(key == bindparam("changed")) for table, key in _KEYS.items()}
_DELIVERED = (
    update(OUTBOX)
    .where(OUTBOX.c.key.in_(bindparam("keys", expanding=True)), OUTBOX.c.delivered_at.is_(None))
    .values(delivered_at=bindparam("at"))
)
_POSTS = {
    "sqlite": sqlite.insert(OUTBOX).on_conflict_do_nothing(index_elements=["key"]),
    "postgresql": postgresql.insert(OUTBOX).on_conflict_do_nothing(index_elements=["key"]),
}


@dataclass
class Writer:
    """A connection that writes what is held back before it does anything else."""

    connection: Connection
    _added: dict[Table, dict[object, Values]] = field(default_factory=dict)
    _changed: dict[tuple[Table, object], Values] = field(default_factory=dict)
    _events: list[Values] = field(default_factory=list)
    _messages: list[Values] = field(default_factory=list)
    _delivered: list[str] = field(default_factory=list)
    _delivered_at: datetime | None = None

    @property
    def dialect(self) -> Dialect:
        return self.connection.dialect

    def execute(
        self, statement: Executable, values: Mapping[str, object] | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        self.flush()
        return self.connection.execute(statement, values)

    def add(self, table: Table, key: object, row: Values) -> None:
        self._added.setdefault(table, {})[key] = row

    def change(self, table: Table, key: object, values: Values) -> None:
        """Of a row that is there, or was added before."""
        added = self._added.get(table, {}).get(key)
        if added is not None:
            added.update(values)
        else:
            self._changed.setdefault((table, key), {}).update(values)

    def tell(self, event: Values) -> None:
        self._events.append(event)

    def post(self, message: Values) -> None:
        """One whose key is there already is not posted again."""
        self._messages.append(message)

    def deliver(self, key: str, at: datetime) -> None:
        self._delivered.append(key)
        self._delivered_at = at

    def flush(self) -> None:
        added, changed, events, messages = self._added, self._changed, self._events, self._messages
        self._added, self._changed, self._events, self._messages = {}, {}, [], []
        delivered, self._delivered = self._delivered, []
        for table in added:
            self._many(_INSERTS[table], list(added[table].values()))
        for (table, key), values in changed.items():
            self.connection.execute(_UPDATES[table], {**values, "changed": key})
        self._many(_EVENTS, events)
        if messages:
            self._many(_POSTS[self.dialect.name], messages)
        if delivered:
            self.connection.execute(_DELIVERED, {"keys": sorted(delivered), "at": self._delivered_at})

    def _many(self, statement: Executable, rows: Sequence[Values]) -> None:
        if rows:
            self.connection.execute(statement, rows[0] if len(rows) == 1 else rows)
