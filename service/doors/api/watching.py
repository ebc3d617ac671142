"""Who waits for what happens to bisections: one poller of this process asks the database once for all of them.

An event's id is given before its transaction ends, so a lower one may come after a higher. The poller goes on past a
gap only when it is filled, or so old that nothing comes into it any more; then a reader that goes on from the last id
that it has seen misses nothing. A watcher holds its place and nothing else: what it has not read yet lies once for
all watchers of a bisection, its last few events, and in the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar

import anyio
from anyio import to_thread

from service.application.flow import Flow
from service.application.ports import StoreBusy
from service.domain.bisection import Event
from service.domain.errors import UserError

T = TypeVar("T")
#: Seconds between two questions, and after which nothing comes into a gap any more: who writes an event ends at once.
EVERY_S, GAP_S = 0.25, 2.0
#: Ids before the last one that are looked at for gaps when the poller begins.
LOOK_BACK = 1000
#: Events of one answer of the database, and those of a bisection that are kept, and that a watcher is given at a time.
AT_ONCE, KEPT = 1000, 64
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Watchers at a time: of all callers together, and of each. `slow_s`: how long a reader may take nothing;
    `beat_s`: between two signs of life; `longest_s`: of one answer, after which its reader asks again."""

    most: int = 2000
    each: int = 200
    slow_s: float = 30.0
    beat_s: float = 15.0
    longest_s: float = 3600.0


class TooManyWatchers(UserError):
    slug = "too-many-watchers"
    title = "Too many are watching"
    status = 503


class TooManyOfYours(TooManyWatchers):
    status = 429


@dataclass
class _Watched:
    """A bisection with watchers. `since`: all of its events with greater ids are in `recent`."""

    since: int
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT))
    waiting: set[asyncio.Event] = field(default_factory=set)

    def add(self, event: Event) -> None:
        if len(self.recent) == KEPT:
            self.since = self.recent[0].id
        self.recent.append(event)


class Watchers:
    """Not for more than one event loop at a time."""

    def __init__(self, flow: Flow, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._flow = flow
        self._watched: dict[str, _Watched] = {}
        self._by_caller: dict[str, int] = {}
        self._settled = 0
        #: When which id was the greatest, and the greatest of GAP_S ago.
        self._seen: deque[tuple[float, int]] = deque()
        self._horizon = 0
        self._poller: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        #: Threads that ask for watchers, apart from those of all other requests.
        self._threads = anyio.CapacityLimiter(8)

    @contextmanager
    def watching(self, id: str, caller: str, at: int = 0) -> Iterator[Watcher]:
        """`at`: the last event that the watcher has seen. Errors: TooManyWatchers."""
        self._let_in(caller)
        try:
            waiting = asyncio.Event()
            watched = self._watched.setdefault(id, _Watched(self._settled))
            watched.waiting.add(waiting)
            self._poll()
            try:
                yield Watcher(id, at, self, watched, waiting)
            finally:
                watched.waiting.discard(waiting)
                if not watched.waiting:
                    self._watched.pop(id, None)
        finally:
            self._let_out(caller)

    async def kept(self, id: str, after: int) -> Sequence[Event]:
        """Errors: StoreBusy."""
        return await self.asked(partial(self._flow.events, id, after, KEPT))

    async def asked(self, ask: Callable[[], T]) -> T:
        """In a thread of the watchers'."""
        return await to_thread.run_sync(ask, limiter=self._threads)

    def _let_in(self, caller: str) -> None:
        advice = "watch fewer at a time, or ask for their reports now and then with If-None-Match"
        if sum(self._by_caller.values()) >= self.limits.most:
            raise TooManyWatchers(f"{self.limits.most} are watching already, and no more are let in", advice=advice)
        if self._by_caller.get(caller, 0) >= self.limits.each:
            raise TooManyOfYours(f"{self.limits.each} of {caller[:100]} are watching already", advice=advice)
        self._by_caller[caller] = self._by_caller.get(caller, 0) + 1

    def _let_out(self, caller: str) -> None:
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]

    def _poll(self) -> None:
        if self._poller is None or self._poller.done():
            self._begun = asyncio.Event()
            self._poller = asyncio.create_task(self._polling())

    async def settled(self) -> int:
        """The id up to which everything is known. Errors: StoreBusy."""
        while not self._begun.is_set():
            self._poll()
            poller = self._poller
            assert poller is not None
            begun = asyncio.ensure_future(self._begun.wait())
            await asyncio.wait({begun, poller}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            if poller.done() and not self._begun.is_set():
                poller.result()
        return self._settled

    async def _polling(self) -> None:
        """Ends with the last watcher. Errors: StoreBusy, when it cannot begin."""
        last = await self.asked(self._flow.last_event)
        self._settled, self._horizon = max(0, last - LOOK_BACK), 0
        self._seen.clear()
        for watched in self._watched.values():
            watched.since = self._settled
        try:
            while self._watched:
                found = await self._found()
                self._tell(found)
                self._begun.set()
                if len(found) < AT_ONCE:
                    await asyncio.sleep(EVERY_S)
        finally:
            # Whoever still watches begins it anew.
            self._begun.clear()

    async def _found(self) -> Sequence[Event]:
        try:
            return await self.asked(partial(self._flow.happened, self._settled, AT_ONCE))
        except StoreBusy as error:
            log.warning("watchers are told nothing while the database is away: %s", error)
            return ()

    def _tell(self, found: Sequence[Event]) -> None:
        old = self._old(found[-1].id if found else self._settled)
        touched = set()
        for event in found:
            if event.id > max(self._settled + 1, old):
                break
            self._settled = event.id
            if (watched := self._watched.get(event.bisection_id)) is not None:
                watched.add(event)
                touched.add(event.bisection_id)
        for id in touched:
            for waiting in self._watched[id].waiting:
                waiting.set()

    def _old(self, last: int) -> int:
        """The greatest id that had been given GAP_S ago: what is missing below it will not come."""
        now = monotonic()
        self._seen.append((now, last))
        while self._seen[0][0] <= now - GAP_S:
            self._horizon = self._seen.popleft()[1]
        return self._horizon


@dataclass
class Watcher:
    """`at`: the id up to which everything was given out."""

    id: str
    at: int
    _all: Watchers
    _watched: _Watched
    _waiting: asyncio.Event

    async def more(self) -> Sequence[Event]:
        """What has happened since `at`, as far as everything is known; some of it, when that is much. Errors:
        StoreBusy."""
        settled = await self._all.settled()
        self._waiting.clear()
        if self.at >= self._watched.since:
            found = [event for event in self._watched.recent if event.id > self.at]
            self.at = found[-1].id if found else self.at
            return found
        kept = await self._all.kept(self.id, self.at)
        found = [event for event in kept if event.id <= settled]
        self.at = found[-1].id if found and len(kept) == KEPT else max(self.at, settled)
        return found

    async def wait(self, within_s: float) -> bool:
        """Whether anything has happened since `more` or `looks` was asked."""
        try:
            await asyncio.wait_for(self._waiting.wait(), within_s)
        except TimeoutError:
            return False
        return True

    async def looks(self, ask: Callable[[], T]) -> T:
        """What is asked for, in a thread; what happens meanwhile ends the next wait. Errors: StoreBusy, those of it."""
        await self._all.settled()
        self._waiting.clear()
        return await self._all.asked(ask)
