"""Old logs and wheels, in SQL: the part of the Transaction protocol in service/application/aging.py."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.adapters.database.pending import Writer
from service.adapters.database.rows import BISECTIONS, BUILDS, COUNTED, OUTBOX, PROBES
from service.application.aging import Owner
from service.domain.evidence import Fault, Outcome
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_BUILDS, LIVE_PROBES, BuildState

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_LOG, _CONTROL = ("log", "path"), ("control", "log", "path")


class SqlAging:
    """A part of the transaction."""

    _connection: Writer

    def claim(self, what: str, every_s: float, now: datetime) -> bool:
        kind = sqlite.insert if self._connection.dialect.name == "sqlite" else postgresql.insert
        self._connection.execute(kind(COUNTED).values(name=what, until=_BEGINNING).on_conflict_do_nothing())
        row = select(COUNTED.c.until).where(COUNTED.c.name == what).with_for_update()
        last: datetime = self._connection.execute(row).scalar_one()
        if now - last < timedelta(seconds=every_s):
            return False
        self._connection.execute(update(COUNTED).where(COUNTED.c.name == what).values(until=now))
        return True

    def due_again(self, what: str) -> None:
        self._connection.execute(update(COUNTED).where(COUNTED.c.name == what).values(until=_BEGINNING))

    def old_logs(self, kind: str, before: datetime, after: tuple[datetime, str] | None, most: int) -> tuple[Owner, ...]:
        table, key, live = _of(kind)
        query = self._logs(kind).where(table.c.finished_at < before, table.c.log_removed_at.is_(None), ~live)
        query = query.where(or_(*self._holds_logs(kind)))
        if after is not None:
            at, id = after
            query = query.where(or_(table.c.finished_at > at, and_(table.c.finished_at == at, key > id)))
        return tuple(self._owners(kind, query.order_by(table.c.finished_at, key).limit(most)))

    def owners(self, ids: Collection[str]) -> tuple[Owner, ...]:
        several = sorted(ids)
        return tuple(
            owner
            for kind in ("probe", "build")
            for owner in self._owners(kind, self._logs(kind).where(_of(kind)[1].in_(several)))
        )

    def wheels(self, keys: Collection[str]) -> dict[str, tuple[str | None, bool]]:
        query = select(BUILDS.c.key, BUILDS.c.state, BUILDS.c.wheel_path).where(BUILDS.c.key.in_(sorted(keys)))
        rows = self._connection.execute(query)
        return {key: (path if state is BuildState.BUILT else None, state in LIVE_BUILDS) for key, state, path in rows}

    def logs_removed(self, owners: Collection[Owner], at: datetime) -> None:
        for kind in ("probe", "build"):
            table, key, _ = _of(kind)
            ids = sorted(owner.id for owner in owners if owner.kind == kind)
            if ids:
                self._connection.execute(update(table).where(key.in_(ids)).values(log_removed_at=at))

    def forget_delivered(self, before: datetime, most: int) -> int:
        # By the key, and so many alone: there is no index of when they were, and the first ones are the oldest.
        first = select(OUTBOX.c.id, OUTBOX.c.delivered_at).where(OUTBOX.c.delivered_at.is_not(None))
        oldest = first.order_by(OUTBOX.c.id).limit(most).subquery()
        gone = select(oldest.c.id).where(oldest.c.delivered_at < before)
        return self._connection.execute(delete(OUTBOX).where(OUTBOX.c.id.in_(gone))).rowcount

    def _logs(self, kind: str) -> Select[Any]:
        """Of logs the paths alone: an outcome may be long. Faults are few, and whole."""
        table, key, live = _of(kind)
        log, control = (self._text(table.c[_outcome(kind)], way) for way in (_LOG, _CONTROL))
        own = self._text(table.c.log, ("path",)) if kind == "build" else log
        return select(key, log, control, own, table.c.faults, table.c.finished_at, live, table.c.log_removed_at)

    def _holds_logs(self, kind: str) -> Iterator[ColumnElement[bool]]:
        table = _of(kind)[0]
        yield table.c[_outcome(kind)].is_not(None)
        yield self._text(table.c.faults, (0, "kind")).is_not(None)
        if kind == "build":
            yield table.c.log.is_not(None)

    def _text(self, column: Any, way: tuple[str | int, ...]) -> ColumnElement[str]:
        if self._connection.dialect.name == "sqlite":
            steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
            return func.json_extract(column, f"${steps}")
        return func.json_extract_path_text(column, *map(str, way))

    def _owners(self, kind: str, query: Select[Any]) -> Iterator[Owner]:
        for id, log, control, own, faults, finished_at, live, removed_at in self._connection.execute(query):
            paths = (log, control, own, *_of_faults(faults))
            found = tuple(dict.fromkeys(path for path in paths if path))
            yield Owner(kind, id, found, finished_at, bool(live), removed_at is not None)


def _of(kind: str) -> tuple[Table, ColumnElement[str], ColumnElement[bool]]:
    """The table, its key, and what says that a bisection which is not over needs the row."""
    states = sorted(LIVE_BISECTIONS)
    if kind == "probe":
        going = select(BISECTIONS.c.id).where(BISECTIONS.c.id == PROBES.c.bisection_id, BISECTIONS.c.state.in_(states))
        return PROBES, PROBES.c.id, or_(exists(going), PROBES.c.state.in_(sorted(LIVE_PROBES)))
    live = select(BISECTIONS.c.id).where(BISECTIONS.c.state.in_(states))
    wanted = exists(select(PROBES.c.id).where(PROBES.c.build_key == BUILDS.c.key, PROBES.c.bisection_id.in_(live)))
    asked = BUILDS.c.bisection_id.in_(live)
    return BUILDS, BUILDS.c.key, or_(wanted, asked, BUILDS.c.state.in_(sorted(LIVE_BUILDS)))


def _outcome(kind: str) -> str:
    return "outcome" if kind == "probe" else "failure"


def _of_faults(faults: tuple[Fault, ...]) -> Iterator[str]:
    for fault in faults:
        outcome: Outcome | None = fault.outcome
        while outcome is not None:
            if outcome.log is not None:
                yield outcome.log.path
            outcome = outcome.control
