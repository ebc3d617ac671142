"""The queues that this worker reads, and the Celery application that does."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable
from typing import Any

import celery
import kombu.entity
from celery.worker import state

from worker.contract import AHEAD, NOW, Gpu, Queue, gpu_class, gpu_queue, node_queue
from worker.waking import Wake

log = logging.getLogger(__name__)


def of_builds(roles: Iterable[str]) -> tuple[str, ...]:
    return (str(Queue.BUILD),) if "build" in roles else ()


def of_probes(roles: Iterable[str], node: str, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Its own, those of its classes of GPUs, and that of all nodes. It is asked for another order in turn."""
    if "run" not in roles:
        return ()
    classes = dict.fromkeys(gpu_queue(gpu_class(gpu.model)) for gpu in gpus)
    return (node_queue(node), *classes, str(Queue.PROBE))


def make_app(redis_url: str, queues: Iterable[str] = (Queue.BUILD, Queue.PROBE)) -> celery.Celery:
    """Early acknowledgement: the service's database decides what is run again, never the broker."""
    app = celery.Celery("firstbad-worker", broker=redis_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_queues=[kombu.entity.Queue(name) for name in queues],  # type: ignore[no-untyped-call]
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_connect_timeout": 5.0,
            "socket_timeout": 15.0,
            "visibility_timeout": 24 * 3600,
            # All queues are asked for what somebody waits for before any is asked for what is made ahead.
            "priority_steps": [NOW, AHEAD],
        },
    )
    return app


def make_sender(redis_url: str) -> celery.Celery:
    """What reports are sent with. It gives up at the first failure, since they are kept: with the client's own pauses a
    result would hang in memory for as long as a broker that stands still takes."""
    app = celery.Celery("firstbad-reports", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        task_ignore_result=True,
        broker_transport_options={"socket_connect_timeout": 5.0, "socket_timeout": 5.0, "max_retries": 0},
    )
    return app


def quiet(worker: type, stop: Callable[[], None]) -> type:
    """Celery's worker, told to stop by `stop` and not by a line of its own that is like no other of the log."""

    def told(*_: object) -> None:
        try:
            stop()
        finally:
            state.should_stop = 0

    class Quiet(worker):  # type: ignore[misc]
        def install_platform_tweaks(self, worker: Any) -> None:
            super().install_platform_tweaks(worker)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, told)

    return Quiet


class Intake:
    """Takes no probe while the node is out. `out` is called from any thread, as often as one likes."""

    def __init__(self, wake: Wake, queues: tuple[str, ...]) -> None:
        self._wake, self._queues = wake, queues
        self._out = False

    def out(self, out: bool) -> None:
        if out != self._out:
            self._out = out
            log.warning("this node was %s", "taken out: it takes no probe" if out else "put back in")
            self._wake.call(self._leave if out else self._read)

    def _leave(self, consumer: Any) -> None:
        for name in self._queues:
            consumer.cancel_task_queue(name)

    def _read(self, consumer: Any) -> None:
        for name in self._queues:
            consumer.add_task_queue(name)
