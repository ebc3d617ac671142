"""The Celery worker: takes an order, does it by the pipeline, sends what came of it. `run(settings)` is the worker."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import celery
import kombu.entity
import kombu.exceptions
import redis
from celery import signals
from celery.exceptions import SecurityWarning
from pydantic import BaseModel, ValidationError

from worker.assembly import facts_of, make_pipeline, remove_orphans, store_fault
from worker.contract import (
    AHEAD,
    NOW,
    VERSION,
    BuildOrder,
    BuildResult,
    Fault,
    NodeReport,
    ProbeOrder,
    ProbeResult,
    Queue,
    Started,
    SurveyOrder,
    SurveyResult,
    Task,
)
from worker.errors import NodeFault
from worker.node import Keeper, Key, Pulse, connect
from worker.outgoing import Outgoing, Unreachable
from worker.run.job import delete_leftovers
from worker.run.stop import STOPPED, Stop
from worker.settings import Settings
from worker.waking import Wake

log = logging.getLogger(__name__)

#: Seconds that running jobs get to end after SIGTERM; then the process ends without them.
SHUTDOWN_S = 5.0
#: Seconds that removing job folders may take then.
REMOVE_S = 2.0
RESULTS = {"build": Task.BUILT, "probe": Task.PROBED, "survey": Task.SURVEYED}
QUEUES = {"build": Queue.BUILD, "run": Queue.PROBE}


def make_app(redis_url: str, roles: Iterable[str] = tuple(QUEUES)) -> celery.Celery:
    """Early acknowledgement: the service's database decides what is run again, never the broker."""
    app = celery.Celery("firstbad-worker", broker=redis_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_queues=[kombu.entity.Queue(QUEUES[role]) for role in roles],  # type: ignore[no-untyped-call]
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


class Worker:
    """The parts of one worker, joined."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app = make_app(settings.redis_url, settings.roles)
        self.stopping = threading.Event()
        self.free = Wake()
        self.outgoing = Outgoing(settings.work_dir / "outgoing", self._send)
        self.keeper = Keeper(connect(settings.redis_url), settings.node)
        self.pulse = Pulse(self._beat)
        self.pipeline = make_pipeline(settings)
        self.store_fault = store_fault(self.pipeline.site.store)
        self.app.task(name=Task.BUILD)(self.build)
        self.app.task(name=Task.PROBE)(self.probe)
        self.app.task(name=Task.SURVEY)(self.survey)
        self.app.steps["consumer"].add(self.free.step())

    def probe(self, order: dict[str, Any]) -> None:
        self._do("probe", "probe", order, ProbeOrder, self.pipeline.probe, self._probe_fault)

    def build(self, order: dict[str, Any]) -> None:
        self._do("build", "key", order, BuildOrder, self.pipeline.build, self._build_fault)

    def survey(self, order: dict[str, Any]) -> None:
        self._do("survey", "bisection", order, SurveyOrder, self.pipeline.survey, self._survey_fault)

    def _do(
        self,
        kind: str,
        id_name: str,
        raw: dict[str, Any],
        model: type[BaseModel],
        work: Callable[[Any, Stop], BaseModel | None],
        failed: Callable[[str, int, Fault], BaseModel],
    ) -> None:
        id, attempt = str(raw.get(id_name)), int(raw.get("attempt", 0))
        key, stop = (kind, id, attempt), Stop()
        if not self.keeper.take(key, stop):
            log.info("%s %s.%s is dropped: taken already, or cancelled", *key)
            return
        with self.keeper.holding(key):
            if self.stopping.is_set():
                stop.press(STOPPED)
            # Whatever ends this without a result, the service hears of it.
            fault = Fault(kind="worker", message="the worker failed", advice=f"See the log of {self.settings.node}.")
            result: BaseModel | None = failed(id, attempt, fault)
            try:
                self._started(key)
                result = work(_parsed(raw, model), stop)
            except NodeFault as error:
                result = failed(id, attempt, Fault(kind=error.kind, message=error.message, advice=error.advice))
            finally:
                if result is not None:
                    self.outgoing.deliver(RESULTS[kind], result.model_dump(mode="json"))

    def _probe_fault(self, id: str, attempt: int, fault: Fault) -> ProbeResult:
        return ProbeResult(probe=id, attempt=attempt, node=self.settings.node, fault=fault)

    def _build_fault(self, id: str, attempt: int, fault: Fault) -> BuildResult:
        return BuildResult(key=id, attempt=attempt, node=self.settings.node, seconds=0.0, fault=fault)

    def _survey_fault(self, id: str, attempt: int, fault: Fault) -> SurveyResult:
        return SurveyResult(bisection=id, attempt=attempt, node=self.settings.node, fault=fault)

    def _started(self, key: Key) -> None:
        kind, id, attempt = key
        message = Started(kind=kind, id=id, attempt=attempt, node=self.settings.node)
        with contextlib.suppress(Unreachable):
            self._send(Task.STARTED, message.model_dump(mode="json"))

    def report(self, event: str) -> None:
        if self.store_fault:
            # It may have been mended.
            self.store_fault = store_fault(self.pipeline.site.store)
        facts = {"store.fault": self.store_fault} if self.store_fault else {}
        for sandbox in self.pipeline.site.sandboxes.values():
            facts.update({f"{sandbox.kind}.{name}": value for name, value in facts_of(sandbox).items()})
        message = NodeReport(
            node=self.settings.node, event=event, slots=self.settings.slots, roles=self.settings.roles, facts=facts
        )
        with contextlib.suppress(Unreachable):
            self._send(Task.NODE, message.model_dump(mode="json"))

    def _beat(self) -> None:
        self.report("alive")
        self.outgoing.flush()

    def _send(self, task: str, message: dict[str, Any]) -> None:
        try:
            self.app.send_task(task, args=[message], queue=Queue.CONTROL, retry=False, ignore_result=True)
        except (kombu.exceptions.OperationalError, redis.RedisError, OSError) as error:
            raise Unreachable(str(error)) from error

    def start(self) -> int:
        """Works until SIGTERM or SIGINT; the exit status, which is not 0 when the broker sent what cannot be read."""
        # It names an option that this command does not have; what orders run is not root's.
        warnings.filterwarnings("ignore", category=SecurityWarning)
        signals.worker_ready.connect(self._ready, weak=False)
        signals.worker_shutting_down.connect(self._shutting_down, weak=False)
        self.keeper.start()
        self.pulse.start()
        worker = self.app.Worker(
            pool=self.free.pool(),
            concurrency=self.settings.slots,
            hostname=f"firstbad@{self.settings.node}",
            without_mingle=True,
            without_gossip=True,
            without_heartbeat=True,
            loglevel="INFO",
            task_events=False,
            quiet=True,
        )
        worker.start()
        self.pulse.close()
        self.keeper.close()
        self.report("left")
        self.pipeline.site.bin.wait(REMOVE_S)
        for sandbox in self.pipeline.site.sandboxes.values():
            sandbox.close()
        return int(worker.exitcode or 0)

    def _ready(self, **_: Any) -> None:
        self.report("booted")
        self.outgoing.flush()

    def _shutting_down(self, **_: Any) -> None:
        self.stopping.set()
        self.keeper.press_all(STOPPED)
        last = threading.Timer(SHUTDOWN_S, os._exit, (1,))
        last.daemon = True
        last.start()


def _parsed(raw: dict[str, Any], model: type[BaseModel]) -> Any:
    """Errors: NodeFault, for what this worker does not understand."""
    if raw.get("version") != VERSION:
        message = f"the order has version {raw.get('version')!r}, this worker reads version {VERSION}"
        raise NodeFault("version", message, "Run the service and its workers in the same version.")
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise NodeFault("order", f"the order cannot be read: {error}"[:2000], "") from error


def watch_parent(fd: int) -> None:
    """Ends this worker as SIGTERM would, when the process that holds the other end of the pipe is gone."""

    def wait() -> None:
        while os.read(fd, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


@contextlib.contextmanager
def alone(work_dir: Path) -> Iterator[None]:
    """Errors: NodeFault, also when another worker uses the folder: each would remove the other's jobs."""
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        file = (work_dir / "worker.lock").open("w")
    except OSError as error:
        message = f"FIRSTBAD_WORK_DIR: {str(work_dir)!r} cannot be used: {(error.strerror or str(error)).lower()}"
        raise NodeFault("work-dir", message, "Name a folder that the worker may write.") from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another worker works in {work_dir}"
            raise NodeFault("work-dir", message, "Give each worker its own FIRSTBAD_WORK_DIR.") from error
        yield


def run(settings: Settings) -> int:
    """Runs a worker in this process until SIGTERM; its exit status. Errors: NodeFault, when it cannot start."""
    with alone(settings.work_dir):
        if settings.parent_fd is not None:
            watch_parent(settings.parent_fd)
        worker = Worker(settings)
        remove_orphans(worker.pipeline.site.sandboxes.values())
        for folder in ("jobs", "trash"):
            delete_leftovers(settings.work_dir / folder)
        worker.pipeline.site.environments.tidy()
        return worker.start()
