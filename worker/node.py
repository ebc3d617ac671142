"""This node towards the service: leases that are kept alive, orders that are cancelled, heartbeats."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from worker.contract import (
    LEASE_S,
    RENEW_S,
    SERVICE_KEY,
    Held,
    Queue,
    cancel_key,
    done_key,
    lease_key,
    out_key,
    sent_key,
    taken_key,
)
from worker.reading import version_said
from worker.threads import Vital

log = logging.getLogger(__name__)

CANCEL_S = 0.5
BEAT_S = 5.0
TAKEN_S = 24 * 3600

Key = tuple[str, str, int]


class Button(Protocol):
    """A run's stop button."""

    def press(self, reason: str) -> None: ...


def connect(url: str) -> redis.Redis:
    """A client that gives up after seconds: whoever asks has something better to do than to wait."""
    return redis.Redis.from_url(
        url, socket_timeout=5.0, socket_connect_timeout=5.0, retry=Retry(NoBackoff(), 1), decode_responses=True
    )


def recorded(client: redis.Redis, keys: Sequence[Key]) -> tuple[frozenset[Key], bool]:
    """Those that the service has dealt with, and whether it has read all that was sent to it. Errors: RedisError."""
    with client.pipeline(transaction=False) as pipe:
        pipe.mget([done_key(*key) for key in keys])
        pipe.llen(Queue.CONTROL)
        found, waiting = pipe.execute()
    return frozenset(key for key, done in zip(keys, found, strict=True) if done is not None), waiting == 0


def press(button: Button, reason: str) -> None:
    """In a thread of its own: ending a run may take as long as a container engine likes."""
    threading.Thread(target=button.press, args=(reason,), daemon=True).start()


class Pulse(Vital):
    """Calls `beat` every few seconds. That may take its time, which leases have not."""

    def __init__(self, beat: Callable[[], None]) -> None:
        super().__init__("pulse")
        self._beat, self._over = beat, threading.Event()

    def run(self) -> None:
        while not self._over.wait(BEAT_S):
            self._beat()

    def close(self) -> None:
        self._over.set()


class Keeper(Vital):
    """Renews the leases of what runs here and presses the buttons of what was cancelled, in a thread of its own.

    Redis may go away and come back, empty too: a lease is set, never only prolonged. `out` hears again and again
    whether the service has taken this node out. `ended` is what has a result that the service has not recorded: its
    leases are kept as well, else it would be run again.
    """

    def __init__(
        self,
        client: redis.Redis,
        node: str,
        out: Callable[[bool], None],
        ended: Callable[[], Collection[Key]] = frozenset,
    ) -> None:
        super().__init__("keeper")
        self._redis, self._node, self._out, self._ended = client, node, out, ended
        self._lock = threading.Lock()
        self._held: dict[Key, Button] = {}
        #: What was taken while Redis could not be told.
        self._untold: set[Key] = set()
        self._over = threading.Event()
        #: The version of the contract that the service says it has; None while it does not say.
        self.service: object = None

    def take(self, key: Key, button: Button) -> bool:
        """Whether this worker is the one that does it: false for a second delivery and for what was cancelled."""
        ended = key in self._ended()
        with self._lock:
            twice = ended or key in self._held
            if not twice:
                self._held[key] = button
        if twice:
            with self._lock:
                self._untold.add(key)
            return False
        taken = False
        try:
            taken = self._claim(key)
        except redis.RedisError as error:
            # The order came through Redis a moment ago; a lease that cannot be set now is set when it is back.
            log.warning("redis cannot be asked about %s %s.%s, which is done anyway: %s", *key, error)
            taken = True
            with self._lock:
                self._untold.add(key)
        finally:
            if not taken:
                self.drop(key)
        return taken

    def _claim(self, key: Key) -> bool:
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(taken_key(*key), self._node, nx=True, ex=TAKEN_S)
            pipe.exists(cancel_key(*key))
            first, cancelled = pipe.execute()
        if not first or cancelled:
            # This order is in the queue no more.
            self._redis.delete(sent_key(*key))
            return False
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(lease_key(*key), self._node, ex=LEASE_S)
            pipe.delete(sent_key(*key))
            pipe.execute()
        return True

    def again(self, key: Key, button: Button) -> bool:
        """Takes what a former life of this worker took: false for what was cancelled meanwhile, has a result, or is
        held already."""
        ended = key in self._ended()
        with self._lock:
            if ended or key in self._held:
                return False
            self._held[key] = button
        try:
            if self._redis.exists(cancel_key(*key)):
                self.drop(key)
                return False
            self._renew([key])
        except redis.RedisError as error:
            log.warning("redis cannot be asked about %s %s.%s, which goes on: %s", *key, error)
        return True

    def held(self) -> list[Held]:
        """The builds and probes that this worker has now, with those that it has only to tell of."""
        with self._lock:
            keys = self._held.keys() | self._ended()
        return [Held(kind=kind, id=id, attempt=n) for kind, id, n in keys if kind in ("build", "probe")]

    def is_out(self) -> bool:
        """Whether this node is taken out; not when that cannot be known."""
        try:
            return bool(self._redis.exists(out_key(self._node)))
        except redis.RedisError:
            return False

    def drop(self, key: Key) -> None:
        """It runs no more. Its lease lasts a while, and longer where a result waits to be recorded."""
        with self._lock:
            self._held.pop(key, None)

    @contextlib.contextmanager
    def holding(self, key: Key) -> Iterator[None]:
        try:
            yield
        finally:
            self.drop(key)

    def press_all(self, reason: str) -> None:
        with self._lock:
            held = list(self._held.values())
        for button in held:
            press(button, reason)

    def close(self) -> None:
        self._over.set()

    def run(self) -> None:
        renew, away = 0.0, False
        while not self._over.wait(CANCEL_S):
            now = time.monotonic()
            with self._lock:
                held = dict(self._held)
            try:
                # First: what somebody has put into Redis may be what cannot be read.
                if now >= renew and (leased := held.keys() | self._ended()):
                    self._renew(leased)
                    renew = now + RENEW_S
                self._tell()
                if held:
                    self._cancel(held)
                self._look()
            except (redis.RedisError, OSError, UnicodeError) as error:
                if not away:
                    log.warning("redis cannot be asked, leases may pass until it can: %s", error)
                away = True
            else:
                if away:
                    log.info("redis can be asked again")
                away = False

    def _look(self) -> None:
        out, service = self._redis.mget([out_key(self._node), SERVICE_KEY])
        self._out(out is not None)
        self.service = version_said(service)

    def _tell(self) -> None:
        """While an order counts as being in the queue, nobody misses the lease of him who has it."""
        with self._lock:
            late = list(self._untold)
        if not late:
            return
        with self._redis.pipeline(transaction=False) as pipe:
            for key in late:
                pipe.set(taken_key(*key), self._node, nx=True, ex=TAKEN_S)
                pipe.delete(sent_key(*key))
            pipe.execute()
        with self._lock:
            self._untold.difference_update(late)

    def _cancel(self, held: dict[Key, Button]) -> None:
        found = self._redis.mget([cancel_key(*key) for key in held])
        for key, value in zip(held, found, strict=True):
            if value is not None:
                press(held[key], "cancelled")

    def _renew(self, held: Collection[Key]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for key in held:
                pipe.set(lease_key(*key), self._node, ex=LEASE_S)
            pipe.execute()
