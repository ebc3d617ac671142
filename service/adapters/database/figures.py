"""What is counted of the whole service. What ended is counted once and for all, and what ended since at each look."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Select, case, delete, func, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.adapters.database.counts import Counts, queue
from service.adapters.database.pending import Writer
from service.adapters.database.rows import (
    BEATS,
    BISECTIONS,
    BUILDS,
    COUNTED,
    NODES,
    OUTBOX,
    PROBES,
    TALLIES,
    from_row,
    to_row,
)
from service.application.queues import BUILD
from service.domain.bisection import Node
from service.domain.figures import Beat, Figures, Standing, Tally
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, BuildState, ProbeState

#: What ended so long ago is seen by everyone: no transaction is committed later after it read the clock.
SETTLED = timedelta(seconds=30)
#: So much is left to be counted at each look, rather than to write at each.
LEFT = timedelta(seconds=15)
#: Probes and builds that are counted in one transaction: on SQLite nobody else writes meanwhile.
AT_ONCE = 5000
#: Older beats are of workers that will not come back.
FORGOTTEN = timedelta(days=1)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_ALL = "all"


class SqlFigures:
    """A part of the transaction."""

    _connection: Writer

    def figures(self, now: datetime) -> Figures:
        since = self._since()
        counts = Counts(self._connection.dialect.name)
        settled = tuple(from_row(Tally, row) for row in self._mappings(select(TALLIES)))
        fresh = self._tallied((*counts.of_ended(after=since), *counts.of_live()))
        depth, oldest = self._connection.execute(_undelivered(now)).one()
        return Figures(
            at=now,
            tallies=merged((*settled, *fresh)),
            standings=self._standings(),
            bisections=self._bisections(),
            paused=self._connection.execute(_paused()).scalar_one(),
            nodes=tuple(from_row(Node, row) for row in self._mappings(select(NODES).order_by(NODES.c.name))),
            undelivered=depth,
            oldest_at=oldest,
            beats=self.beats(),
        )

    def save_beat(self, beat: Beat) -> None:
        added = self._upsert(BEATS).values(to_row(beat))
        others = {column.name: added.excluded[column.name] for column in BEATS.c if column.name != "name"}
        self._connection.execute(added.on_conflict_do_update(index_elements=["name"], set_=others))
        self._connection.execute(delete(BEATS).where(BEATS.c.at < beat.at - FORGOTTEN))

    def remove_beat(self, name: str) -> None:
        self._connection.execute(delete(BEATS).where(BEATS.c.name == name))

    def beats(self) -> tuple[Beat, ...]:
        return tuple(
            from_row(Beat, row) for row in self._mappings(select(BEATS).order_by(BEATS.c.at.desc(), BEATS.c.name))
        )

    def settle(self, now: datetime, *, at_once: int = AT_ONCE) -> bool:
        first = self._upsert(COUNTED).values(name=_ALL, until=_BEGINNING)
        self._connection.execute(first.on_conflict_do_nothing())
        since, settled = self._since(lock=True), now - SETTLED
        if settled - since < LEFT:
            return True
        until = min((settled, *(self._last_of(table, since, at_once) or settled for table in (PROBES, BUILDS))))
        counts = Counts(self._connection.dialect.name)
        for tally in merged(self._tallied(counts.of_ended(after=since, until=until))):
            self._add_tally(tally)
        self._connection.execute(update(COUNTED).where(COUNTED.c.name == _ALL).values(until=until))
        return until == settled

    def _since(self, *, lock: bool = False) -> datetime:
        """The time up to which the tallies go. With the lock, one process at a time adds to them."""
        query = select(COUNTED.c.until).where(COUNTED.c.name == _ALL)
        found: datetime | None = self._connection.execute(query.with_for_update() if lock else query).scalar()
        return found or _BEGINNING

    def _last_of(self, table: Any, since: datetime, many: int) -> datetime | None:
        """When the last of so many that ended since did; None when there are fewer."""
        ended = table.c.finished_at
        query = select(ended).where(ended > since).order_by(ended).offset(many - 1).limit(1)
        found: datetime | None = self._connection.execute(query).scalar()
        return found

    def _add_tally(self, tally: Tally) -> None:
        added = self._upsert(TALLIES).values(to_row(tally))
        sums = {name: TALLIES.c[name] + added.excluded[name] for name in ("count", "total")}
        self._connection.execute(added.on_conflict_do_update(index_elements=["name", "label", "bound"], set_=sums))

    def _tallied(self, queries: Iterable[Select[Any]]) -> tuple[Tally, ...]:
        rows = (row for query in queries for row in self._mappings(query) if row["count"])
        return tuple(Tally(**{**row, "total": row["total"] or 0.0, "label": row["label"] or ""}) for row in rows)

    def _standings(self) -> tuple[Standing, ...]:
        probes = _standing(PROBES, "probe", queue(), ProbeState.QUEUED, ProbeState.RUNNING)
        builds = _standing(BUILDS, "build", literal(BUILD), BuildState.QUEUED, BuildState.RUNNING)
        return tuple(Standing(*row) for query in (probes, builds) for row in self._connection.execute(query))

    def _bisections(self) -> dict[BisectionState, int]:
        query = select(BISECTIONS.c.state, func.count()).group_by(BISECTIONS.c.state)
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def _mappings(self, query: Select[Any]) -> Any:
        return self._connection.execute(query).mappings()

    def _upsert(self, table: Any) -> Any:
        return sqlite.insert(table) if self._connection.dialect.name == "sqlite" else postgresql.insert(table)


def merged(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Each name, label and bound once."""
    found: dict[tuple[str, str, float], Tally] = {}
    for tally in tallies:
        key = (tally.name, tally.label, tally.bound)
        if (other := found.get(key)) is not None:
            tally = Tally(*key, tally.count + other.count, tally.total + other.total)
        found[key] = tally
    return tuple(found[key] for key in sorted(found))


def _standing(table: Any, kind: str, where: Any, queued: Any, running: Any) -> Select[Any]:
    waits = table.c.sent_at.is_(None)
    state = case((table.c.state == running, "running"), (waits, "waiting"), else_="sent")
    # Not by names that columns have: PostgreSQL would group by these.
    columns = (literal(kind).label("of_kind"), where.label("in_queue"), state.label("in_state"))
    query: Select[Any] = select(*columns, func.count()).where(table.c.state.in_((queued, running)))
    return query.group_by("of_kind", "in_queue", "in_state")


def _paused() -> Select[Any]:
    live = BISECTIONS.c.state.in_(sorted(LIVE_BISECTIONS))
    return select(func.count()).select_from(BISECTIONS).where(live, BISECTIONS.c.paused_at.is_not(None))


def _undelivered(now: datetime) -> Select[Any, Any]:
    due = (OUTBOX.c.delivered_at.is_(None), OUTBOX.c.posted_at <= now)
    query = select(func.count(), func.min(OUTBOX.c.posted_at))
    return query.where(*due)
