"""Logs of what runs here, for those who watch: published as they come, and not even read while nobody does."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterator

import redis

from worker.contract import Piece, live_channel, watched_key
from worker.errors import NodeFault
from worker.run.along import BEGIN, Along
from worker.run.job import Job

log = logging.getLogger(__name__)

#: With Along's TURN this bounds what a run may publish, and with the flushes of its log how old that is.
TURN_S = 0.25
#: Turns without a watcher after which one who comes is a newcomer: a Redis that was away has forgotten them all.
FORGET = 40

Key = tuple[str, str, int]


class Stream:
    """One run's log on its channel. `seen`: who came last to watch it, None while nobody does."""

    def __init__(self, key: Key, job: Job, cap: int) -> None:
        self.key, self.lock = key, threading.Lock()
        self._job, self._cap = job, cap
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._seen: str | None = None
        self._alone = 0
        self._log, self._name = Along(self._job, self._cap), uuid.uuid4().hex
        self._sent, self._last = 0, b""

    def pieces(self, watcher: str | None) -> Iterator[Piece]:
        """What is to be published now. A new watcher makes the end come once more, which others have already."""
        if watcher is None:
            self._alone += 1
            if self._seen is not None and self._alone > FORGET:
                self._begin_anew()
            return
        self._alone = 0
        if self._seen is not None and watcher != self._seen and self._last:
            yield Piece(self._name, self._sent - len(self._last), self._last)
        self._seen = watcher
        text = self._log.more()
        if text:
            # Counted also when it does not arrive: then those who watch see that something is missing.
            at, self._sent = self._sent, self._sent + len(text)
            self._last = (self._last + text)[-BEGIN:]
            yield Piece(self._name, at, text)


class Live(threading.Thread):
    """One thread for all runs of this worker. Redis may go away and come back."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(name="live", daemon=True)
        self._redis = client
        self._lock = threading.Lock()
        self._streams: set[Stream] = set()
        self._over = threading.Event()
        self._away = False

    @contextlib.contextmanager
    def showing(self, key: Key, job: Job, cap: int) -> Iterator[None]:
        """The job's log, of at most `cap` bytes, can be watched meanwhile; to its very end, before what follows is told
        to anybody."""
        stream = Stream(key, job, cap)
        with self._lock:
            self._streams.add(stream)
        try:
            yield
        finally:
            with self._lock:
                self._streams.discard(stream)
            self._turn([stream])

    def close(self) -> None:
        self._over.set()

    def run(self) -> None:
        while not self._over.wait(TURN_S):
            with self._lock:
                streams = list(self._streams)
            if streams:
                self._turn(streams)

    def _turn(self, streams: list[Stream]) -> None:
        try:
            watchers = self._redis.mget([watched_key(*stream.key) for stream in streams])
            for stream, watcher in zip(streams, watchers, strict=True):
                self._publish(stream, str(watcher) if watcher is not None else None)
        except (redis.RedisError, UnicodeError) as error:
            # Also an answer that is none of ours: this thread goes on for all runs to come.
            if not self._away:
                log.warning("redis does not answer as it should, logs are not shown meanwhile: %s", error)
            self._away = True
        else:
            self._away = False

    def _publish(self, stream: Stream, watcher: str | None) -> None:
        with stream.lock:
            try:
                for piece in stream.pieces(watcher):
                    self._redis.publish(live_channel(*stream.key), piece.packed())
            except (NodeFault, OSError, ValueError) as error:
                log.warning("the log of %s %s.%s cannot be shown: %s", *stream.key, error)
