"""Tells Celery's consumer at once that a slot is free; it would else ask for another order only at its next tick."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from celery import bootsteps
from celery.concurrency.thread import TaskPool


class Wake:
    """Tells the consumer that a slot is free; it would else ask for another order only at its next tick."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)

    def now(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.writer, b"\0")

    def heard(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reader, 4096)

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
                consumer.hub.add_reader(wake.reader, wake.heard)

            def stop(self, consumer: Any) -> None:
                consumer.hub.remove(wake.reader)

        return FreeSlot
