"""The Celery worker: takes an order, does it by the pipeline, sends what came of it. `run(settings)` is the worker."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import kombu.exceptions
import redis
from celery import signals
from celery.exceptions import SecurityWarning
from pydantic import BaseModel, ValidationError

from worker import queues
from worker.adoption import Adopted, Unseen, adopt
from worker.alone import alone, watch_parent
from worker.assembly import facts_of, make_pipeline, store_fault
from worker.contract import (
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
from worker.live import Live
from worker.node import Keeper, Key, Pulse, connect
from worker.outgoing import Outgoing, Unreachable
from worker.run.job import forget_other_insides
from worker.run.machine import hardware
from worker.run.stop import STOPPED, Stop
from worker.settings import Settings
from worker.waking import Wake

log = logging.getLogger(__name__)

#: Seconds that running jobs get to end after SIGTERM; then the process ends without them.
SHUTDOWN_S = 5.0
#: Seconds that removing job folders may take then.
REMOVE_S = 2.0
RESULTS = {"build": Task.BUILT, "probe": Task.PROBED, "survey": Task.SURVEYED}


class Worker:
    """The parts of one worker, joined."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.live = Live(connect(settings.redis_url))
        self.pipeline = make_pipeline(settings, self.live.showing)
        probes = queues.of_probes(settings.roles, settings.node, self.pipeline.site.gpus.inventory)
        self.queues = (*queues.of_builds(settings.roles), *probes)
        self.app = queues.make_app(settings.redis_url, self.queues)
        self.stopping = threading.Event()
        self.free = Wake()
        self.intake = queues.Intake(self.free, probes)
        self.outgoing = Outgoing(settings.work_dir / "outgoing", self._send)
        self.keeper = Keeper(connect(settings.redis_url), settings.node, self.intake.out)
        self.pulse = Pulse(self._beat)
        self.adopted: tuple[Adopted, ...] = ()
        self.unseen = Unseen(self.pipeline.site)
        self.store_fault = store_fault(self.pipeline.site.store)
        self.app.task(name=Task.BUILD)(self.build)
        self.app.task(name=Task.PROBE)(self.probe)
        self.app.task(name=Task.SURVEY)(self.survey)
        self.app.steps["consumer"].add(self.free.step())

    def probe(self, order: dict[str, Any]) -> None:
        self._do("probe", "probe", order, ProbeOrder, self._probe, self._probe_fault)

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

        def answer() -> BaseModel | None:
            self._started(key)
            return work(_parsed(raw, model), stop)

        self._answer(key, stop, answer, failed)

    def _answer(
        self,
        key: Key,
        stop: Stop,
        work: Callable[[], BaseModel | None],
        failed: Callable[[str, int, Fault], BaseModel],
    ) -> None:
        """Works and sends what came of it. Whatever ends it without a result, the service hears of it."""
        kind, id, attempt = key
        with self.keeper.holding(key):
            if self.stopping.is_set():
                stop.press(STOPPED)
            fault = Fault(kind="worker", message="the worker failed", advice=f"See the log of {self.settings.node}.")
            result: BaseModel | None = failed(id, attempt, fault)
            try:
                result = work()
            except NodeFault as error:
                result = failed(id, attempt, Fault(kind=error.kind, message=error.message, advice=error.advice))
            finally:
                if result is not None:
                    self.outgoing.deliver(RESULTS[kind], result.model_dump(mode="json"))

    def adopt(self) -> None:
        """Takes up again what a former life of this worker left; to be called before it starts.

        Their leases are kept from now on, however long it takes to remove the rest.
        """
        self.intake.out(self.keeper.is_out())
        self.keeper.start()
        self.adopted, self.unseen = adopt(self.pipeline.site, self.keeper)
        for each in self.adopted:
            self.free.work(partial(self._go_on, each))

    def _go_on(self, adopted: Adopted) -> None:
        stop = adopted.stop
        self._answer(adopted.key, stop, lambda: self.pipeline.resume(adopted.resumed, stop), self._probe_fault)

    def _probe(self, order: ProbeOrder, stop: Stop) -> ProbeResult | None:
        """Errors: NodeFault, for one that came although this node is taken out."""
        if self.keeper.is_out():
            message = f"{self.settings.node} is taken out, and takes no probe"
            raise NodeFault("node-out", message, "Put it back in, or leave it to other nodes.")
        return self.pipeline.probe(order, stop)

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
        facts = {
            "hardware": hardware(),
            **self.unseen.facts(),
            **({"store.fault": self.store_fault} if self.store_fault else {}),
        }
        for sandbox in self.pipeline.site.sandboxes.values():
            facts.update({f"{sandbox.kind}.{name}": value for name, value in facts_of(sandbox).items()})
        message = NodeReport(
            node=self.settings.node,
            event=event,
            slots=self.settings.slots,
            roles=self.settings.roles,
            facts=facts,
            gpus=self.pipeline.site.gpus.inventory,
            adopted=tuple(each.held for each in self.adopted) if event == "booted" else (),
        )
        with contextlib.suppress(Unreachable):
            self._send(Task.NODE, message.model_dump(mode="json"))

    def _beat(self) -> None:
        self.unseen.look()
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
        self.live.start()
        self.pulse.start()
        worker = self.app.Worker(
            queues=list(self.queues),
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
        self.live.close()
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


def run(settings: Settings) -> int:
    """Runs a worker in this process until SIGTERM; its exit status. Errors: NodeFault, when it cannot start."""
    with alone(settings.work_dir):
        if settings.parent_fd is not None:
            watch_parent(settings.parent_fd)
        worker = Worker(settings)
        worker.pipeline.site.bin.empty()
        worker.adopt()
        if not worker.adopted and not worker.unseen.folders:
            forget_other_insides(settings.work_dir)
        worker.pipeline.site.environments.tidy()
        return worker.start()
