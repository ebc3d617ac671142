"""How the flow does things: transactions whose messages go out once they are committed, and bisections carried on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from service.application import turns
from service.application.advance import ADVANCING, advance
from service.application.aside import Aside
from service.application.keys import Scope, scope_of
from service.application.outbox import Posted, Recorder, compose
from service.application.ports import HistoryFailed, Ports, QueueUnavailable, StoreBusy, Transaction
from service.application.verdicts import clues
from service.domain.bisection import Bisection, Problem
from service.domain.errors import UserError
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, moved

log = logging.getLogger(__name__)
#: Why a repository that was read before cannot be read now.
NO_HISTORY = (UserError, HistoryFailed)
#: So many scopes are kept in memory, of ranges of so many commits at most.
SCOPES_KEPT, LARGE_SCOPE = 512, 2000


class Due:
    """Queues to release, by one thread at a time: what others find to be due meanwhile is done by the one at it."""

    def __init__(self) -> None:
        self._lock, self._queues, self._busy = threading.Lock(), set[str](), False

    def begin(self, queues: Collection[str]) -> Iterator[str]:
        """Queue after queue, until there is none left; none at all where another thread is at it."""
        with self._lock:
            self._queues.update(queues)
            if self._busy:
                return
            self._busy = True
        try:
            while (queue := self._next()) is not None:
                yield queue
        except BaseException:
            self._busy = False
            raise

    def _next(self) -> str | None:
        with self._lock:
            queue = min(self._queues, default=None)
            self._queues -= {queue}
            # In the same moment, or what is added now would be nobody's.
            self._busy = queue is not None
            return queue


class Scopes:
    """Those of the bisections that were carried on last: what a scope is read from never changes, but for what the
    failure turns out to be, and of that `advance` says when it needs another one. Large ones are not kept."""

    def __init__(self) -> None:
        self._lock, self._kept = threading.Lock(), dict[str, Scope]()

    def get(self, id: str) -> Scope | None:
        return self._kept.get(id)

    def keep(self, id: str, scope: Scope) -> None:
        with self._lock:
            self._kept.pop(id, None)
            if len(scope.range) > LARGE_SCOPE:
                return
            while len(self._kept) >= SCOPES_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[id] = scope


@dataclass(frozen=True)
class Work:
    ports: Ports
    _scopes: Scopes = field(init=False, default_factory=Scopes, compare=False, repr=False)
    _due: Due = field(init=False, default_factory=Due, compare=False, repr=False)
    _aside: Aside = field(init=False, default_factory=Aside, compare=False, repr=False)

    @contextmanager
    def _work(self) -> Iterator[Transaction]:
        """A transaction whose messages are sent once it is committed; what cannot be sent waits for the sweep."""
        with self.ports.bisections.transaction() as tx:
            recorder = Recorder(tx, self.ports.clock.now())
            yield recorder
            posted = tuple(compose(tx, message) for message in recorder.posted)
        self._deliver(posted)
        self._release(recorder.touched)

    def _release(self, queues: Collection[str]) -> None:
        """Sends what is next in these queues, in transactions of its own: one for all that ended at about the same
        time, and no result waits for another's turn. Should we die before, the sweep does it."""
        for queue in self._due.begin(queues):
            try:
                with self.ports.watch.doing("release"), self.ports.bisections.transaction() as tx:
                    recorder = Recorder(tx, self.ports.clock.now())
                    turns.release(cast(Transaction, recorder), queue, recorder.began)
                    posted = tuple(compose(tx, message) for message in recorder.posted)
            except StoreBusy as error:
                log.warning("what waits in %s is sent by the sweep: %s", queue, error)
                continue
            self._deliver(posted)

    def _deliver(self, posted: tuple[Posted, ...]) -> None:
        sent = []
        for item in posted:
            try:
                with self.ports.watch.doing("send", **item.about):
                    item.send(self.ports)
            except QueueUnavailable as error:
                log.warning("%s stays in the outbox: %s", item.message.key, error)
                break
            except (StoreBusy, *NO_HISTORY) as error:
                # The next one may be about another repository, or no file at all.
                log.warning("%s stays in the outbox: %s", item.message.key, error)
                continue
            sent.append(item.message.key)
        if sent:
            self._note_delivered(sent)

    def _note_delivered(self, keys: Collection[str]) -> None:
        """A message that is not noted is sent once more by the sweep, which is harmless."""
        try:
            with self.ports.bisections.transaction() as tx:
                for key in keys:
                    tx.delivered(key, self.ports.clock.now())
        except StoreBusy as error:
            log.warning("%d messages will be sent again: %s", len(keys), error)

    def _scope(self, id: str) -> Scope | None:
        """None before the bisection is prepared, and while its repository cannot be read: then the sweep goes on."""
        with self.ports.bisections.transaction() as tx:
            bisection, probes = tx.bisection(id), tx.probes(id)
        if bisection.bad_sha is None or bisection.state not in ADVANCING:
            return None
        try:
            scope = scope_of(self.ports.history, bisection, clues(bisection, probes))
        except NO_HISTORY as error:
            log.warning("bisection %s waits for its repository: %s", id, error)
            return None
        self._scopes.keep(id, scope)
        return scope

    def _advance(self, tx: Transaction, bisection: Bisection, scope: Scope) -> bool:
        with self.ports.watch.doing("advance", bisection=bisection.id):
            return advance(tx, bisection, scope, self.ports.policy.ahead, self.ports.clock.now())

    def _end(self, id: str, state: BisectionState, problem: Problem) -> None:
        now = self.ports.clock.now()
        with self._work() as tx:
            bisection = tx.bisection(id, lock=True)
            if bisection.state in LIVE_BISECTIONS:
                self._to(tx, replace(bisection, problem=problem, ended_at=now), state)

    def _to(self, tx: Transaction, bisection: Bisection, state: BisectionState) -> Bisection:
        now = self.ports.clock.now()
        changed = replace(bisection, state=moved(bisection.state, state), updated_at=now)
        tx.save_bisection(changed)
        tx.add_event(bisection.id, now, "state", {"state": str(state)})
        return changed

    def _advance_all(self, ids: Collection[str]) -> None:
        """Each with a fresh scope where its failure became known since the first was read."""
        for id in ids:
            led = False
            while not led and (scope := self._scope(id)) is not None:
                with self._work() as tx:
                    led = self._advance(tx, tx.bisection(id, lock=True), scope)
