"""Lists page by page, and what has happened: the part of the Transaction that application/lists.py names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from sqlalchemy import Select, bindparam, func, literal, select, tuple_

from service.adapters.database.pending import Writer
from service.adapters.database.rows import BISECTIONS, BUILDS, EVENTS, NODES, PROBES, from_row
from service.application.lists import Order, Page, Place, Sought
from service.domain.bisection import Bisection, Build, Event, Node, Probe
from service.domain.lifecycle import BuildState

T = TypeVar("T")
_BACKWARDS = frozenset({Order.NEWEST, Order.ENDED_LAST})
_BY_END = frozenset({Order.ENDED_LAST, Order.ENDED_FIRST})
#: Made once, as in repository.py.
_HAPPENED = select(EVENTS).where(EVENTS.c.id > bindparam("after")).order_by(EVENTS.c.id).limit(bindparam("limit"))
_LAST = select(func.coalesce(func.max(EVENTS.c.id), 0))
_LAST_OF = _LAST.where(EVENTS.c.bisection_id == bindparam("bisection"))


class SqlLists:
    _connection: Writer

    def page(self, sought: Sought, *, after: Place | None = None, limit: int = 50) -> Page[Bisection]:
        query = _filtered(sought)
        at = BISECTIONS.c.ended_at if sought.order in _BY_END else BISECTIONS.c.created_at
        if sought.order in _BY_END:
            query = query.where(at.is_not(None))
        return self._page(Bisection, _ordered(query, at, BISECTIONS.c.id, after, sought.order in _BACKWARDS), limit)

    def probe_page(self, bisection_id: str, *, after: int = 0, limit: int = 50) -> Page[Probe]:
        query = select(PROBES).where(PROBES.c.bisection_id == bisection_id, PROBES.c.number > after)
        return self._page(Probe, query.order_by(PROBES.c.number), limit)

    def build_page(
        self,
        states: Collection[BuildState] = (),
        bisection_id: str | None = None,
        *,
        after: Place | None = None,
        limit: int = 50,
    ) -> Page[Build]:
        query = select(BUILDS)
        if states:
            query = query.where(BUILDS.c.state.in_(sorted(states)))
        if bisection_id is not None:
            wanted = select(PROBES.c.build_key).where(PROBES.c.bisection_id == bisection_id)
            query = query.where(BUILDS.c.key.in_(wanted) | (BUILDS.c.bisection_id == bisection_id))
        return self._page(Build, _ordered(query, BUILDS.c.queued_at, BUILDS.c.key, after, bisection_id is None), limit)

    def node_page(self, *, after: str = "", limit: int = 50) -> Page[Node]:
        return self._page(Node, select(NODES).where(NODES.c.name > after).order_by(NODES.c.name), limit)

    def happened(self, *, after: int, limit: int) -> tuple[Event, ...]:
        found = self._connection.execute(_HAPPENED, {"after": after, "limit": limit}).mappings()
        return tuple(from_row(Event, row) for row in found)

    def last_event(self, bisection_id: str | None = None) -> int:
        query, values = (_LAST, None) if bisection_id is None else (_LAST_OF, {"bisection": bisection_id})
        found: int = self._connection.execute(query, values).scalar_one()
        return found

    def _page(self, kind: type[T], query: Select[Any], limit: int) -> Page[T]:
        """One more is read than is shown: whether there is another page."""
        rows = self._connection.execute(query.limit(limit + 1)).mappings().all()
        return Page(tuple(from_row(kind, row) for row in rows[:limit]), len(rows) > limit)


def _filtered(sought: Sought) -> Select[Any]:
    query = select(BISECTIONS)
    if sought.states:
        query = query.where(BISECTIONS.c.state.in_(sorted(sought.states)))
    if sought.project is not None:
        query = query.where(BISECTIONS.c.project == sought.project)
    if sought.submitter is not None:
        query = query.where(BISECTIONS.c.submitter == sought.submitter)
    if sought.text:
        query = query.where(BISECTIONS.c.words.contains(sought.text.lower(), autoescape=True))
    return query


def _ordered(query: Select[Any], at: Any, id: Any, after: Place | None, backwards: bool) -> Select[Any]:
    if after is not None:
        # With the columns' types: SQLite keeps times as text.
        place = tuple_(literal(after[0], at.type), literal(after[1], id.type))
        query = query.where(tuple_(at, id) < place if backwards else tuple_(at, id) > place)
    return query.order_by(at.desc(), id.desc()) if backwards else query.order_by(at, id)
