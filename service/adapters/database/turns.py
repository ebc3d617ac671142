"""Whose turn it is, in SQL: the part of the Transaction protocol in service/application/waiting.py.

Each question is answered from the partial indexes of tables.py, whose conditions must stand in a query word by word, or
neither database takes the index. Values of such a condition are no parameters for the same reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    RowMapping,
    Table,
    Text,
    TextualSelect,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
    text,
    type_coerce,
    update,
)

from service.adapters.database.pending import Writer
from service.adapters.database.rows import BISECTIONS, BUILDS, NODES, PROBES, from_row
from service.adapters.database.tables import OUT, WAITING
from service.adapters.database.types import PlainText, UtcDateTime, to_json
from service.application.queues import BUILD, NODE
from service.application.waiting import AtWork, Chosen, Coming, Limited, Line
from service.application.waiting import Out as Attempt
from service.domain.bisection import Probe
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_BUILDS, LIVE_PROBES, BisectionState, BuildState, ProbeState
from service.domain.spending import lasted_s

_DUE = "(due_at IS NULL OR due_at <= :due)"
#: From one value of an index to the next: neither database skips by itself.
_QUEUES = f"""
WITH RECURSIVE found(queue) AS (
  SELECT (SELECT min(queue) FROM probes WHERE {WAITING})
  UNION ALL
  SELECT (SELECT min(probes.queue) FROM probes WHERE {WAITING} AND probes.queue > found.queue)
  FROM found WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL
UNION ALL
SELECT '{BUILD}' WHERE EXISTS (SELECT 1 FROM builds WHERE {WAITING})
"""


def _lines(table: str, among: str) -> TextualSelect:
    first = f"SELECT turn FROM {table} WHERE {WAITING} AND {among}{_DUE}"
    order = f"ORDER BY {'queue, ' if among else ''}turn LIMIT 1"
    written = f"""
WITH RECURSIVE found(turn) AS (
  SELECT ({first} {order})
  UNION ALL
  SELECT ({first} AND {table}.turn > found.turn {order}) FROM found WHERE found.turn IS NOT NULL
)
SELECT turn, (
  SELECT asked_at FROM {table} WHERE {WAITING} AND {among}{table}.turn = found.turn AND {_DUE}
  ORDER BY asked_at LIMIT 1
) AS asked_at FROM found WHERE turn IS NOT NULL
"""
    bound = text(written).bindparams(bindparam("due", type_=UtcDateTime()))
    return bound.columns(turn=PlainText(), asked_at=UtcDateTime())


_PROBE_LINES, _BUILD_LINES = _lines("probes", "queue = :queue AND "), _lines("builds", "")


class Turns:
    _connection: Writer

    def waiting_queues(self) -> tuple[str, ...]:
        return tuple(row.queue for row in self._connection.execute(text(_QUEUES)))

    def lines(self, queue: str, due: datetime) -> tuple[Line, ...]:
        if queue == BUILD:
            found = self._connection.execute(_BUILD_LINES, {"due": due})
        else:
            found = self._connection.execute(_PROBE_LINES, {"due": due, "queue": queue})
        return tuple(Line(row.turn, row.asked_at) for row in found)

    def lock_queue(self, queue: str) -> None:
        if self._connection.dialect.name == "postgresql":
            key = func.hashtextextended(f"queue {queue}", 0)
            self._connection.execute(select(func.pg_advisory_xact_lock(key)))

    def out(self, queue: str) -> Mapping[str, int]:
        table = BUILDS if queue == BUILD else PROBES
        query = select(table.c.turn, func.count().label("many")).where(text(OUT), *_in(table, queue))
        return {row.turn: row.many for row in self._connection.execute(query.group_by(table.c.turn))}

    def slots(self, queue: str, since: datetime) -> int | None:
        query = select(func.sum(NODES.c.slots)).where(NODES.c.state == "alive", NODES.c.seen_at > since, *_serve(queue))
        found = self._connection.execute(query).scalar()
        return int(found) if found is not None else None

    def first_in(self, queue: str, turn: str, due: datetime, most: int) -> tuple[Chosen, ...]:
        table, key, number = _columns(queue)
        query = select(key.label("id"), table.c.attempt, table.c.asked_at)
        query = query.where(text(WAITING), *_in(table, queue), table.c.turn == turn)
        query = query.where(text(_DUE).bindparams(_due(due))).order_by(table.c.asked_at, number)
        locked = query.limit(most).with_for_update(key_share=True, skip_locked=True)
        return tuple(Chosen(row.id, row.attempt, row.asked_at) for row in self._connection.execute(locked))

    def send(self, queue: str, ids: Collection[str], at: datetime, to: str) -> None:
        table, key, _ = _columns(queue)
        moved = {"queue": to} if table is PROBES and to != queue else {}
        self._connection.execute(update(table).where(key.in_(ids)).values(sent_at=at, silent_since=None, **moved))

    def all_out(self) -> tuple[Attempt, ...]:
        found: list[Attempt] = []
        for kind, table, key in (("probe", PROBES, PROBES.c.id), ("build", BUILDS, BUILDS.c.key)):
            query = select(key.label("id"), table.c.attempt, table.c.silent_since).where(text(OUT))
            rows = self._connection.execute(query)
            found += [Attempt(kind, row.id, row.attempt, row.silent_since is not None) for row in rows]
        return tuple(found)

    def busy(self) -> Mapping[str, int]:
        sent_to = case((PROBES.c.queue.startswith(NODE), func.substr(PROBES.c.queue, len(NODE) + 1)))
        query = select(func.coalesce(PROBES.c.node, sent_to).label("node"), func.count().label("many"))
        query = query.where(text(OUT)).group_by(literal_column("1"))
        return {row.node: row.many for row in self._connection.execute(query) if row.node is not None}

    def coming(self, own: str) -> tuple[Coming, ...]:
        columns = (BUILDS.c.key, BUILDS.c.native_key, BUILDS.c.ahead, BUILDS.c.bisection_id)
        mine = (BUILDS.c.bisection_id == own, BUILDS.c.ahead, BUILDS.c.state.in_(sorted(LIVE_BUILDS)))
        query = select(*columns).where(text(OUT)).union(select(*columns).where(*mine))
        return tuple(Coming(**row) for row in self._connection.execute(query).mappings())

    def at_work(self, most: int, own: str) -> AtWork:
        running = select(PROBES.c.node, func.count().label("many")).where(PROBES.c.state == ProbeState.RUNNING)
        nodes = {row.node: row.many for row in self._connection.execute(running.group_by(PROBES.c.node))}
        queued = self._count(most, PROBES.c.state == ProbeState.QUEUED)
        builds = self._count(most, text(WAITING), (BUILDS.c.bisection_id != own) | ~BUILDS.c.ahead)
        return AtWork({name or "": many for name, many in nodes.items()}, queued, builds)

    def _count(self, most: int, *where: Any) -> int:
        some = select(literal_column("1")).where(*where).limit(most).subquery()
        return self._connection.execute(select(func.count()).select_from(some)).scalar() or 0

    def stuck(self) -> tuple[Chosen, ...]:
        other = BUILDS.alias()
        base = (other.c.native_key == BUILDS.c.native_key, other.c.base_key.is_(None))
        making = select(other.c.key).where(*base, other.c.state.in_(sorted(LIVE_BUILDS - {BuildState.WAITING})))
        columns = (BUILDS.c.key.label("id"), BUILDS.c.attempt, BUILDS.c.asked_at)
        query = select(*columns).where(BUILDS.c.state == BuildState.WAITING, ~making.exists())
        return tuple(Chosen(**row) for row in self._connection.execute(query).mappings())

    def queued_for_nodes(self) -> tuple[Probe, ...]:
        here = (PROBES.c.state == ProbeState.QUEUED, PROBES.c.queue.startswith(NODE))
        return tuple(from_row(Probe, row) for row in self._connection.execute(select(PROBES).where(*here)).mappings())

    def idle(self, states: Collection[BisectionState]) -> tuple[str, ...]:
        live = select(PROBES.c.id).where(
            PROBES.c.bisection_id == BISECTIONS.c.id, PROBES.c.state.in_(sorted(LIVE_PROBES))
        )
        return self._ids(states, None, ~live.exists())

    def building(self, states: Collection[BisectionState], most: int) -> tuple[str, ...]:
        command = type_coerce(BISECTIONS.c.request, JSON)[("recipe", "build_command")].as_string()
        return self._ids(states, most, command.is_not(None))

    def _ids(
        self, states: Collection[BisectionState], most: int | None, *where: ColumnElement[bool]
    ) -> tuple[str, ...]:
        query = select(BISECTIONS.c.id).where(BISECTIONS.c.state.in_(sorted(states)), *where)
        query = query.where(BISECTIONS.c.paused_at.is_(None)).order_by(BISECTIONS.c.created_at).limit(most)
        return tuple(row.id for row in self._connection.execute(query))

    def limited(self, now: datetime) -> tuple[Limited, ...]:
        budget = type_coerce(BISECTIONS.c.budget, JSON)
        wall, gpu = (budget[name].as_float() for name in ("wall_s", "gpu_s"))
        times = (BISECTIONS.c.created_at, BISECTIONS.c.paused_at, BISECTIONS.c.paused_s)
        query = select(BISECTIONS.c.id, wall.label("wall_s"), gpu.label("gpu_s"), *times)
        query = query.where(BISECTIONS.c.state.in_(sorted(LIVE_BISECTIONS)), wall.is_not(None) | gpu.is_not(None))
        rows = self._connection.execute(query).mappings()
        return tuple(Limited(row["id"], _left(row, now), row["gpu_s"]) for row in rows)


def _columns(queue: str) -> tuple[Table, ColumnElement[str], ColumnElement[Any]]:
    """The table, its key, and what comes first of one bisection."""
    if queue == BUILD:
        return BUILDS, BUILDS.c.key, BUILDS.c.queued_at
    return PROBES, PROBES.c.id, PROBES.c.number


def _in(table: Table, queue: str) -> tuple[ColumnElement[bool], ...]:
    return (table.c.queue == queue,) if table is PROBES else ()


def _due(due: datetime) -> Any:
    return bindparam("due", due, type_=UtcDateTime())


def _serve(queue: str) -> tuple[ColumnElement[bool], ...]:
    """Nodes that take what is in this queue; the columns hold JSON as `to_json` writes it."""
    if queue == BUILD:
        return (_holds(NODES.c.roles, to_json("build")),)
    runs = (_holds(NODES.c.roles, to_json("run")), NODES.c.out == "")
    kind, _, name = queue.partition(".")
    if kind == "node":
        return (*runs, NODES.c.name == name)
    if kind == "gpu":
        return (*runs, _holds(NODES.c.gpus, f'"gpu_class":{to_json(name)}'))
    return runs


def _holds(column: ColumnElement[Any], part: str) -> ColumnElement[bool]:
    return cast(column, Text).contains(part, autoescape=True)


def _left(row: RowMapping, now: datetime) -> float | None:
    if row["wall_s"] is None:
        return None
    return float(row["wall_s"]) - lasted_s(row["created_at"], now, row["paused_at"], row["paused_s"])
