"""What this worker does in the thread of Celery's consumer, and when that shall ask for another order."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from celery.concurrency.thread import TaskPool
from celery.worker import state


class Wake:
    """Tells the consumer at once that a slot is free; it would else ask for another order only at its next tick.

    Slots are also taken by what no order of the broker is for, as runs that are adopted.
    """

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self._calls: queue.SimpleQueue[Callable[[Any], None]] = queue.SimpleQueue()
        self._taken: set[object] = set()

    def now(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.writer, b"\0")

    def call(self, what: Callable[[Any], None]) -> None:
        """Calls it with the consumer, in the consumer's thread, as soon as there is one."""
        self._calls.put(what)
        self.now()

    def work(self, what: Callable[[], None]) -> None:
        """Does it in a slot, before any order: to be called before the consumer starts."""
        self._taken.add(what)

        def begin(consumer: Any) -> None:
            consumer.pool.executor.submit(what).add_done_callback(lambda _: self._done(what))

        self.call(begin)

    def _done(self, what: object) -> None:
        self._taken.discard(what)
        self.now()

    def heard(self, consumer: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reader, 4096)
        with contextlib.suppress(queue.Empty):
            while True:
                self._calls.get_nowait()(consumer)

    def pool(self) -> type:
        wake = self

        class WakingPool(TaskPool):  # type: ignore[misc]
            def on_apply(self, *args: Any, **kwargs: Any) -> Any:
                result = super().on_apply(*args, **kwargs)
                result.f.add_done_callback(lambda _: wake.now())
                return result

        return WakingPool

    def step(self) -> type:
        wake = self

        class FreeSlot(bootsteps.StartStopStep):  # type: ignore[misc]
            requires = {"celery.worker.consumer.tasks:Tasks"}

            def start(self, consumer: Any) -> None:
                wake.limit(consumer)
                wake.heard(consumer)
                consumer.hub.add_reader(wake.reader, wake.heard, consumer)

            def stop(self, consumer: Any) -> None:
                consumer.hub.remove(wake.reader)

        return FreeSlot

    def limit(self, consumer: Any) -> None:
        """Lets no order come while all slots are taken."""
        qos = consumer.task_consumer.channel.qos
        can_consume = qos.can_consume

        def has_room() -> bool:
            taken = len(state.reserved_requests) + len(self._taken)
            return bool((not self._taken or taken < consumer.pool.num_processes) and can_consume())

        qos.can_consume = has_room
