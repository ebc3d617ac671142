"""The Transaction protocol in SQL, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, MappingResult, Select, Table, bindparam, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.adapters.database import standing
from service.adapters.database.access import SqlAccess
from service.adapters.database.aging import SqlAging
from service.adapters.database.engine import for_reading, will_pass
from service.adapters.database.figures import SqlFigures
from service.adapters.database.lists import SqlLists
from service.adapters.database.pending import Writer
from service.adapters.database.rows import BISECTIONS, BUILDS, EVENTS, NODES, OUTBOX, PROBES, changes, from_row, to_row
from service.adapters.database.sessions import SqlSessions
from service.adapters.database.turns import Turns
from service.adapters.database.webhooks import SqlWebhooks
from service.application.hooks import NOTICE
from service.application.ports import Kept, Stock, StoreBusy
from service.application.queues import BUILD
from service.domain.bisection import Bisection, Build, Event, Message, Node, Origin, Probe
from service.domain.errors import NotFound
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_BUILDS, BisectionState, BuildState, ProbeState

T = TypeVar("T", Bisection, Probe)
#: Made once: to put a statement together takes longer than to look up what it was compiled to.
_PROBES_OF = select(PROBES).where(PROBES.c.bisection_id == bindparam("bisection")).order_by(PROBES.c.number)
_BY_ID: dict[tuple[type, bool], Select[Any]] = {}
for _kind, _table in ((Bisection, BISECTIONS), (Probe, PROBES)):
    _BY_ID[_kind, False] = select(_table).where(_table.c.id == bindparam("key"))
    _BY_ID[_kind, True] = _BY_ID[_kind, False].with_for_update(key_share=True)


class SqlTransaction(SqlAccess, SqlAging, SqlFigures, SqlLists, SqlSessions, SqlWebhooks, Turns):
    """Lives as long as its connection's transaction. Not for more than one thread.

    `lock`: SELECT … FOR NO KEY UPDATE, which excludes itself, but not the check that a new event's bisection is there.
    SQLite drops that clause, and needs none: BEGIN IMMEDIATE lets one writer in.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = Writer(connection)
        self._read: dict[tuple[type, str], Any] = {}
        #: What nobody else can change until this transaction ends: what it has read is what is there.
        self._held: set[tuple[type, str]] = set()
        self._numbered: dict[str, tuple[str, ...]] = {}
        #: Bisections that were read for orders, which tell only what never changes.
        self._near: set[str] = set()

    def add_bisection(self, bisection: Bisection) -> None:
        self._add(BISECTIONS, bisection)

    def bisection(self, id: str, *, lock: bool = False) -> Bisection:
        return self._one(Bisection, id, lock=lock)

    def save_bisection(self, bisection: Bisection) -> None:
        self._save(BISECTIONS, bisection)

    def bisections(self, states: Collection[BisectionState] = (), *, limit: int = 100) -> tuple[Bisection, ...]:
        query = select(BISECTIONS).order_by(BISECTIONS.c.created_at.desc(), BISECTIONS.c.id.desc()).limit(limit)
        if states:
            query = query.where(BISECTIONS.c.state.in_(sorted(states)))
        return self._remember(tuple(from_row(Bisection, row) for row in self._rows(query)))

    def unchanged(self, states: Collection[BisectionState], *, limit: int) -> tuple[Bisection, ...]:
        query = select(BISECTIONS).where(BISECTIONS.c.state.in_(sorted(states)))
        query = query.order_by(BISECTIONS.c.updated_at, BISECTIONS.c.id).limit(limit)
        return self._remember(tuple(from_row(Bisection, row) for row in self._rows(query)))

    def add_probe(self, probe: Probe) -> None:
        self._add(PROBES, probe)
        if (known := self._numbered.get(probe.bisection_id)) is not None:
            self._numbered[probe.bisection_id] = (*known, probe.id)

    def probe(self, id: str, *, lock: bool = False) -> Probe:
        return self._one(Probe, id, lock=lock)

    def save_probe(self, probe: Probe) -> None:
        self._save(PROBES, probe)

    def probes(self, bisection_id: str) -> tuple[Probe, ...]:
        """Read once where this transaction holds the bisection. Others may meanwhile begin or send one of them, which
        is seen by who locks it."""
        known = self._numbered.get(bisection_id)
        if known is not None:
            return tuple(self._read[Probe, id] for id in known)
        found = self._probes(_PROBES_OF, {"bisection": bisection_id})
        if (Bisection, bisection_id) in self._held:
            self._numbered[bisection_id] = tuple(probe.id for probe in found)
        return found

    def probes_in(self, states: Collection[ProbeState]) -> tuple[Probe, ...]:
        return self._probes(
            select(PROBES)
            .where(PROBES.c.state.in_(sorted(states)))
            .order_by(PROBES.c.planned_at, PROBES.c.bisection_id, PROBES.c.number)
        )

    def probes_of_build(self, key: str) -> tuple[Probe, ...]:
        return self._probes(
            select(PROBES)
            .where(PROBES.c.build_key == key, PROBES.c.state == ProbeState.BUILDING)
            .order_by(PROBES.c.planned_at, PROBES.c.bisection_id, PROBES.c.number)
        )

    def build(self, key: str, *, lock: bool = False) -> Build | None:
        query = select(BUILDS).where(BUILDS.c.key == key)
        if lock:
            query = query.with_for_update(key_share=True)
        row = self._rows(query).first()
        if row is None and lock and self._connection.dialect.name == "postgresql":
            # A row that is not there cannot be locked, and two transactions must not both find that they are the first.
            self._connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
            row = self._rows(query).first()
        return None if row is None else self._remember_builds((from_row(Build, row),))[0]

    def save_build(self, build: Build) -> None:
        """What this transaction has read is written where it differs: its turn may come meanwhile."""
        read = self._read.get((Build, build.key))
        if read is None:
            self._replace(BUILDS, "key", build)
        elif values := changes(read, build):
            self._connection.change(BUILDS, build.key, values)
        self._remember_builds((build,))

    def builds_in(self, states: Collection[BuildState]) -> tuple[Build, ...]:
        return self._builds(BUILDS.c.state.in_(sorted(states)))

    def builds_of_native(self, native_key: str) -> tuple[Build, ...]:
        return self._builds(BUILDS.c.native_key == native_key)

    def builds_ahead(self, bisection_id: str) -> tuple[Build, ...]:
        return self._builds(
            BUILDS.c.state.in_(sorted(LIVE_BUILDS)), BUILDS.c.bisection_id == bisection_id, BUILDS.c.ahead
        )

    def builds_of(self, bisection_id: str) -> tuple[Build, ...]:
        wanted = select(PROBES.c.build_key).where(PROBES.c.bisection_id == bisection_id)
        return self._builds(BUILDS.c.key.in_(wanted) | (BUILDS.c.bisection_id == bisection_id))

    def lock_native(self, native_key: str) -> None:
        if self._connection.dialect.name == "postgresql":
            key = func.hashtextextended(f"native {native_key}", 0)
            self._connection.execute(select(func.pg_advisory_xact_lock(key)))

    def stock(self, repo: str) -> tuple[Stock, ...]:
        query = select(BUILDS.c.key, BUILDS.c.native_key, BUILDS.c.origin, BUILDS.c.seconds)
        found = self._rows(query.where(BUILDS.c.repo == repo, BUILDS.c.state == BuildState.BUILT))
        return tuple(Stock(**row) for row in found)

    def kept(self) -> tuple[Kept, ...]:
        """A bisection needs the wheels of its probes, what these were put together from, and what it asked for."""
        live = BISECTIONS.c.state.in_(sorted(LIVE_BISECTIONS))
        of_probes = select(PROBES.c.build_key).join(BISECTIONS, BISECTIONS.c.id == PROBES.c.bisection_id).where(live)
        needed = BUILDS.c.key.in_(of_probes) | BUILDS.c.bisection_id.in_(select(BISECTIONS.c.id).where(live))
        bases = select(BUILDS.c.base_key).where(needed, BUILDS.c.base_key.is_not(None))
        is_needed = (needed | BUILDS.c.key.in_(bases)).label("needed")
        query = select(BUILDS.c.key, func.coalesce(BUILDS.c.wheel_bytes, 0).label("bytes"), BUILDS.c.used_at, is_needed)
        query = query.where(BUILDS.c.state == BuildState.BUILT)
        # Of two that were used at the same time the one that is made again in no time goes first.
        order = func.coalesce(BUILDS.c.used_at, BUILDS.c.queued_at), BUILDS.c.origin != Origin.OVERLAY, BUILDS.c.key
        return tuple(Kept(**row) for row in self._rows(query.order_by(*order)))

    def _builds(self, *where: Any) -> tuple[Build, ...]:
        query = select(BUILDS).where(*where).order_by(BUILDS.c.queued_at, BUILDS.c.key)
        return self._remember_builds(tuple(from_row(Build, row) for row in self._rows(query)))

    def _remember_builds(self, builds: tuple[Build, ...]) -> tuple[Build, ...]:
        self._read.update({(Build, build.key): build for build in builds})
        return builds

    def add_event(self, bisection_id: str, at: datetime, kind: str, data: dict[str, object]) -> None:
        self._connection.tell({"bisection_id": bisection_id, "at": at, "kind": kind, "data": data})

    def events(self, bisection_id: str, *, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        query = (
            select(EVENTS)
            .where(EVENTS.c.bisection_id == bisection_id, EVENTS.c.id > after)
            .order_by(EVENTS.c.id)
            .limit(limit)
        )
        return tuple(from_row(Event, row) for row in self._rows(query))

    def post(self, message: Message, at: datetime) -> None:
        self._connection.post(to_row(message) | {"posted_at": at})

    def undelivered(
        self, *, due: datetime | None = None, limit: int = 100, removals: bool = False
    ) -> tuple[Message, ...]:
        columns = (OUTBOX.c.topic, OUTBOX.c.key, OUTBOX.c.payload)
        query = select(*columns).where(OUTBOX.c.delivered_at.is_(None)).order_by(OUTBOX.c.id).limit(limit)
        topic = OUTBOX.c.topic
        query = query.where(topic == "remove" if removals else topic.not_in(("remove", NOTICE)))
        if due is not None:
            query = query.where(OUTBOX.c.posted_at <= due)
        return tuple(from_row(Message, row) for row in self._rows(query))

    def delivered(self, key: str, at: datetime) -> None:
        self._connection.deliver(key, at)

    def save_node(self, node: Node) -> None:
        self._replace(NODES, "name", node)

    def node(self, name: str, *, lock: bool = False) -> Node | None:
        query = select(NODES).where(NODES.c.name == name)
        row = self._rows(query.with_for_update() if lock else query).first()
        return from_row(Node, row) if row is not None else None

    def nodes(self) -> tuple[Node, ...]:
        return tuple(from_row(Node, row) for row in self._rows(select(NODES).order_by(NODES.c.name)))

    def send(self, queue: str, ids: Collection[str], at: datetime, to: str) -> None:
        """What is sent is read at once, with its bisections, for the orders that are made of it."""
        super().send(queue, ids, at, to)
        self._numbered.clear()
        self._held -= {(kind, id) for kind in (Probe, Build) for id in ids}
        sent = self._probes(select(PROBES).where(PROBES.c.id.in_(ids))) if queue != BUILD else ()
        self._held |= {(Probe, probe.id) for probe in sent}
        wanted = select(BISECTIONS).where(BISECTIONS.c.id.in_({probe.bisection_id for probe in sent}))
        asked = self._remember(tuple(from_row(Bisection, row) for row in self._rows(wanted))) if sent else ()
        self._near |= {bisection.id for bisection in asked}

    def _rows(self, query: Select[Any], values: Mapping[str, object] | None = None) -> MappingResult:
        return self._connection.execute(query, values).mappings()

    def _one(self, kind: type[T], id: str, *, lock: bool = False) -> T:
        if (kind, id) in self._held or (kind is Bisection and not lock and id in self._near):
            return cast(T, self._read[kind, id])
        row = self._rows(_BY_ID[kind, lock], {"key": id}).first()
        if row is None:
            raise _missing(kind, id)
        if lock:
            self._held.add((kind, id))
        return self._remember((from_row(kind, row),))[0]

    def _probes(self, query: Select[Any], values: Mapping[str, object] | None = None) -> tuple[Probe, ...]:
        return self._remember(tuple(from_row(Probe, row) for row in self._rows(query, values)))

    def _remember(self, things: tuple[T, ...]) -> tuple[T, ...]:
        self._read.update({(type(thing), thing.id): thing for thing in things})
        return things

    def _add(self, table: Table, thing: T) -> None:
        self._connection.add(table, thing.id, to_row(thing))
        self._remember((thing,))
        self._held.add((type(thing), thing.id))

    def _save(self, table: Table, thing: T) -> None:
        """Writes what differs from what this transaction has read; the whole row when it has not."""
        read = self._read.get((type(thing), thing.id))
        if read is not None:
            if values := changes(read, thing):
                self._connection.change(table, thing.id, values)
        elif not self._connection.execute(update(table).where(table.c.id == thing.id).values(to_row(thing))).rowcount:
            raise _missing(type(thing), thing.id)
        self._remember((thing,))

    def flush(self) -> None:
        """Writes what is held back."""
        self._connection.flush()

    def _replace(self, table: Table, key: str, thing: Any) -> None:
        added = self._insert(table).values(to_row(thing))
        others = {column.name: added.excluded[column.name] for column in table.c if column.name != key}
        self._connection.execute(added.on_conflict_do_update(index_elements=[key], set_=others))

    def _insert(self, table: Table) -> Any:
        """Both dialects know ON CONFLICT, by classes without a common base."""
        return sqlite.insert(table) if self._connection.dialect.name == "sqlite" else postgresql.insert(table)


class Database:
    """Implements Bisections."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reader = for_reading(engine)

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        with _passing(), self._engine.begin() as connection:
            found = SqlTransaction(connection)
            yield found
            found.flush()

    @contextmanager
    def reading(self) -> Iterator[SqlTransaction]:
        with _passing(), self._reader.begin() as connection:
            yield SqlTransaction(connection)

    def trouble(self) -> str | None:
        return standing.trouble(self._engine)


@contextmanager
def _passing() -> Iterator[None]:
    """Errors: StoreBusy, of what may work later."""
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        if not will_pass(error):
            raise
        raise StoreBusy(f"the database cannot do it now: {getattr(error, 'orig', error)}") from error


def _missing(kind: type, id: str) -> NotFound:
    name = kind.__name__.lower()
    lists = "firstbad show ID --probes shows those of a bisection" if kind is Probe else "firstbad list shows all"
    return NotFound(f"there is no {name} {id!r}", value=id, advice=f"check the id; {lists}")
