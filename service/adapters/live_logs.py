"""Implements LiveLogs over Redis: asks the worker by a key that is kept alive, and hears it on a channel."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from time import monotonic

import redis
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.retry import Retry

from service.application.ports import QueueUnavailable
from worker.contract import RENEW_S, Piece, lease_key, live_channel, watched_key

#: Seconds without a word after which the caller is given a turn.
QUIET_S = 0.5
#: A worker shows a log for so long after the last one who watched it was gone, who renewed this so often.
WATCHED_S = 5
RENEW_WATCH_S = 1.0
#: A lease that is missing for so long is gone: a Redis that came back empty gets it again from the worker.
GONE_S = 2.0 * RENEW_S
#: Redis may be away for so long.
AWAY_S = 30.0

Key = tuple[str, str, int]


class RedisLiveLogs:
    """`gone_s`, `away_s`: as GONE_S and AWAY_S."""

    def __init__(self, redis_url: str, gone_s: float = GONE_S, away_s: float = AWAY_S) -> None:
        self._gone_s, self._away_s = gone_s, away_s
        self._redis = redis.Redis.from_url(
            redis_url, socket_connect_timeout=5, socket_timeout=10, retry=Retry(NoBackoff(), 0)
        )

    def follow(self, kind: str, id: str, attempt: int) -> Iterator[bytes]:
        """While the attempt has not begun it waits. What is missed while Redis is away is shown afterwards, or told.

        Errors: QueueUnavailable.
        """
        key, place, lease = (kind, id, attempt), Place(), Lease(self._gone_s)
        away, pause = 0.0, threading.Event()
        while True:
            try:
                for message in self._messages(key, lease):
                    away = 0.0
                    yield place.of(message)
                return
            except redis.RedisError as error:
                away = away or monotonic()
                if monotonic() - away > self._away_s:
                    raise QueueUnavailable(f"the broker is away: {error}") from error
            pause.wait(QUIET_S)
            yield b""

    def _messages(self, key: Key, lease: Lease) -> Iterator[bytes | None]:
        """None when nothing came for a while. Ends with the lease. Errors: redis.RedisError."""
        with closing(self._redis.pubsub()) as channel:  # type: ignore[no-untyped-call]
            _subscribe(channel, live_channel(*key))
            renew = 0.0
            while True:
                if monotonic() >= renew:
                    lease.look(self._watch(key, first=renew == 0.0))
                    renew = monotonic() + RENEW_WATCH_S
                message = channel.get_message(timeout=QUIET_S)
                heard = message is not None and message["type"] == "message"
                if not heard and lease.gone:
                    return
                yield message["data"] if message is not None and heard else None

    def _watch(self, key: Key, *, first: bool) -> bool:
        """Keeps the mark that somebody watches; whether the attempt has its lease."""
        mark = watched_key(*key)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.exists(lease_key(*key))
            pipe.expire(mark, WATCHED_S)
            leased, kept = pipe.execute()
        if first or not kept:
            # A new name there makes the worker begin with the end of what it has shown already.
            self._redis.set(mark, uuid.uuid4().hex, ex=WATCHED_S)
        return bool(leased)


def _subscribe(channel: PubSub, name: str) -> None:
    """Returns when whatever is published from now on will be heard."""
    channel.subscribe(name)
    end = monotonic() + 10
    while (message := channel.get_message(timeout=1.0)) is None or message["type"] != "subscribe":
        if monotonic() > end:
            raise redis.TimeoutError("it does not confirm a subscription")


class Lease:
    """Whether an attempt that had begun is over."""

    def __init__(self, gone_s: float) -> None:
        self._gone_s = gone_s
        self._seen: float | None = None

    def look(self, there: bool) -> None:
        if there:
            self._seen = monotonic()

    @property
    def gone(self) -> bool:
        return self._seen is not None and monotonic() - self._seen > self._gone_s


class Place:
    """How far a stream was read, so that what comes twice is shown once, and what is missing is told."""

    def __init__(self) -> None:
        self._stream, self._next = "", 0

    def of(self, message: bytes | None) -> bytes:
        if message is None:
            return b""
        piece = Piece.unpacked(message)
        missing = piece.at - self._next if piece.stream == self._stream else 0
        known = max(0, -missing)
        self._stream, self._next = piece.stream, max(piece.at + len(piece.text), self._next if known else 0)
        told = b"\n[firstbad: %d bytes left out here]\n" % missing if missing > 0 else b""
        return told + piece.text[known:]
