"""Selects of what has ended, counted: each gives rows of name, label, bound, count and total, as a Tally has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    Select,
    Table,
    Text,
    case,
    cast,
    extract,
    func,
    literal,
    select,
)

from service.adapters.database.rows import BUILDS, PROBES
from service.application.queues import NODE, PICKY
from service.domain.figures import RUNS_S, WAITS_S
from service.domain.lifecycle import LIVE_BUILDS, LIVE_PROBES, BuildState, ProbeState

Condition = ColumnElement[bool]
_MADE = (BuildState.BUILT, BuildState.EVICTED)


@dataclass(frozen=True)
class Counts:
    """On one dialect: neither does sums on times, nor looks into JSON, as the other does."""

    dialect: str

    def of_ended(self, *, after: Any, until: Any = None) -> Iterator[Select[Any]]:
        """Of what ended after that time, and not later than the other one."""
        probes = self._ended(PROBES, LIVE_PROBES, after, until)
        yield _counted("probes", _verdict(), PROBES, *probes)
        yield self._waits("turn waits", queue(), PROBES.c.sent_at, _due(), *probes)
        yield self._waits("queue waits", queue(), PROBES.c.started_at, PROBES.c.sent_at, *probes)
        # Not as "is judged", for which SQLite would take the index on states: there are most of them.
        ran = (*probes, PROBES.c.state.not_in((ProbeState.FAULTED, ProbeState.CANCELLED)))
        yield self._runs("runs", _verdict(), self._seconds(PROBES.c.finished_at, PROBES.c.started_at), PROBES, *ran)
        yield _counted("wheels", _wheel(), PROBES.outerjoin(BUILDS, BUILDS.c.key == PROBES.c.build_key), *ran)
        yield from self._spent(PROBES, *probes)
        builds = self._ended(BUILDS, LIVE_BUILDS, after, until)
        yield _counted("builds", _result(), BUILDS, *builds)
        yield self._runs("build runs", _result(), BUILDS.c.seconds, BUILDS, *builds)
        yield self._faults("build faults", BUILDS, *builds)

    def of_live(self) -> Iterator[Select[Any]]:
        """What has befallen those that are not over yet."""
        yield from self._spent(PROBES, PROBES.c.state.in_(sorted(LIVE_PROBES)))
        yield self._faults("build faults", BUILDS, BUILDS.c.state.in_(sorted(LIVE_BUILDS)))

    def _ended(self, table: Table, live: frozenset[Any], after: Any, until: Any) -> tuple[Condition, ...]:
        ended = (table.c.finished_at > after, table.c.state.not_in(sorted(live)))
        return ended if until is None else (*ended, table.c.finished_at <= until)

    def _spent(self, probes: Table, *where: Condition) -> Iterator[Select[Any]]:
        yield self._faults("probe faults", probes, *where)
        for name, column in (("gpu leased", probes.c.gpu_leased_s), ("gpu used", probes.c.gpu_used_s)):
            yield _row(name, literal(""), literal(inf), func.sum(column)).where(*where, column > 0)

    def _faults(self, name: str, table: Table, *where: Condition) -> Select[Any]:
        # None at all is the rule, and then the list need not be opened.
        some = cast(table.c.faults, Text) != "[]"
        if self.dialect == "postgresql":
            each = func.json_array_elements(table.c.faults).table_valued("value", joins_implicitly=True)
            kind = func.json_extract_path_text(each.c.value, "kind")
        else:
            each = func.json_each(table.c.faults).table_valued("value", joins_implicitly=True)
            kind = func.json_extract(each.c.value, "$.kind")
        return _counted(name, kind, table.join(each, literal(True)), *where, some)

    def _waits(self, name: str, label: Any, end: Any, begin: Any, *where: Condition) -> Select[Any]:
        known = (end.is_not(None), begin.is_not(None))
        return _bucketed(name, label, self._seconds(end, begin), WAITS_S, PROBES, *where, *known)

    def _runs(self, name: str, label: Any, seconds: Any, table: Table, *where: Condition) -> Select[Any]:
        return _bucketed(name, label, seconds, RUNS_S, table, *where, seconds.is_not(None))

    def _seconds(self, later: Any, earlier: Any) -> ColumnElement[Any]:
        """Never below 0, however the clocks of two machines differ."""
        if self.dialect == "postgresql":
            found: ColumnElement[Any] = cast(extract("epoch", later) - extract("epoch", earlier), Double)
        else:
            found = (func.julianday(later) - func.julianday(earlier)) * 86400.0
        return case((found < 0, 0.0), else_=found)


def _row(name: str, label: Any, bound: Any, total: Any) -> Select[Any]:
    columns = (literal(name).label("name"), label.label("label"), cast(bound, Double).label("bound"))
    return select(*columns, func.count().label("count"), cast(total, Double).label("total"))


def _counted(name: str, label: Any, source: FromClause, *where: Condition) -> Select[Any]:
    return _row(name, label, literal(inf), literal(0.0)).select_from(source).where(*where).group_by("label")


def _bucketed(
    name: str, label: Any, seconds: Any, bounds: tuple[float, ...], table: Table, *where: Condition
) -> Select[Any]:
    bound = case(*((seconds <= most, literal(most)) for most in bounds[:-1]), else_=literal(inf))
    query = _row(name, label, bound, func.sum(seconds)).select_from(table).where(*where)
    return query.group_by("label", "bound")


def _verdict() -> ColumnElement[Any]:
    state = PROBES.c.state
    faulted, cancelled = state == ProbeState.FAULTED, state == ProbeState.CANCELLED
    verdict = func.coalesce(cast(PROBES.c.verdict, Text), "measured")
    return case((faulted, "faulted"), (cancelled, "cancelled"), else_=verdict)


def queue() -> ColumnElement[Any]:
    """Those of single nodes as one, and those for nodes with certain labels or models as well."""
    queue = PROBES.c.queue
    return case((queue.startswith(NODE), "node"), (queue.startswith(PICKY), "labelled"), else_=queue)


def _due() -> ColumnElement[Any]:
    later = PROBES.c.due_at > PROBES.c.queued_at
    return case((later, PROBES.c.due_at), else_=PROBES.c.queued_at)


def _wheel() -> ColumnElement[Any]:
    """How the probe came by it: without one, one that was made before, or how it was made for this one."""
    found = BUILDS.c.finished_at <= PROBES.c.planned_at
    made = func.coalesce(cast(BUILDS.c.origin, Text), "failed")
    return case((PROBES.c.build_key.is_(None), "none"), (found, "reused"), else_=made)


def _result() -> ColumnElement[Any]:
    made = BUILDS.c.state.in_(sorted(_MADE))
    return case((made, func.coalesce(cast(BUILDS.c.origin, Text), "built")), else_=cast(BUILDS.c.state, Text))
