"""The Celery worker: takes an order, does it by the pipeline, sends what came of it. `run(settings)` is the worker."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import kombu.exceptions
import redis
from celery import signals
from celery.exceptions import SecurityWarning
from pydantic import BaseModel
from structlog.contextvars import bound_contextvars

from worker import queues
from worker.adoption import Adopted, Unseen, adopt
from worker.alone import alone, watch_parent
from worker.assembly import make_pipeline
from worker.contract import BuildOrder, Fault, Held, ProbeOrder, ProbeResult, Queue, Started, SurveyOrder, Task
from worker.errors import NodeFault
from worker.live import Live
from worker.node import Keeper, Key, Pulse, connect, recorded
from worker.outgoing import Look, Outgoing, Unreachable
from worker.reading import Head, failure, fault_of, head, parsed
from worker.report import Event, Reporter
from worker.run.job import forget_other_insides
from worker.run.stop import STOPPED, Stop
from worker.settings import Settings
from worker.threads import broken
from worker.tidy import Tidy
from worker.tracing import tracing
from worker.waking import Wake

log = logging.getLogger(__name__)

#: Seconds that running jobs get to end after SIGTERM; then the process ends without them.
SHUTDOWN_S = 5.0
#: Seconds that removing job folders may take then.
REMOVE_S = 2.0
Order = TypeVar("Order", BuildOrder, ProbeOrder, SurveyOrder)
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
        self.sender = queues.make_sender(settings.redis_url)
        self.stopping = threading.Event()
        self.free = Wake()
        self.intake = queues.Intake(self.free, probes)
        self.redis = connect(settings.redis_url)
        self.outgoing = Outgoing(settings.work_dir / "outgoing", self._send, self._look)
        self.keeper = Keeper(connect(settings.redis_url), settings.node, self.intake.out, self.outgoing.keys)
        self.pulse = Pulse(self._beat)
        self.adopted: tuple[Adopted, ...] = ()
        self.booted, self.booting = False, threading.Lock()
        self.unseen = Unseen(self.pipeline.site)
        self.reporter = Reporter(settings, self.pipeline.site)
        self.tidy = Tidy(self.pipeline.site, settings.cache_bytes)
        self.tracing = tracing(settings.otlp_endpoint, settings.node)
        self.app.task(name=Task.BUILD)(self.build)
        self.app.task(name=Task.PROBE)(self.probe)
        self.app.task(name=Task.SURVEY)(self.survey)
        self.app.steps["consumer"].add(self.free.step())

    # What a later service might send beside the order keeps nobody from refusing it.

    def probe(self, order: object = None, *_: object, **__: object) -> None:
        self._do("probe", order, ProbeOrder, self._probe)

    def build(self, order: object = None, *_: object, **__: object) -> None:
        self._do("build", order, BuildOrder, self.pipeline.build)

    def survey(self, order: object = None, *_: object, **__: object) -> None:
        self._do("survey", order, SurveyOrder, self.pipeline.survey)

    def _do(self, kind: str, raw: object, model: type[Order], work: Callable[[Order, Stop], BaseModel | None]) -> None:
        found = head(kind, raw)
        if found is None or not isinstance(raw, dict):
            log.error("a %s order does not say whose it is, so that nobody can be answered: it is dropped", kind)
            return
        stop = Stop()
        with bound_contextvars(**found.bound):
            # Of an attempt that cannot be read there is no lease: nothing but a refusal comes of it.
            if found.attempt_known and not self.keeper.take(found.key, stop):
                log.info("an order is dropped: taken already, or cancelled")
                return
            self._answer(found, stop, lambda: self._worked(found, raw, model, work, stop), raw.get("trace"))

    def _worked(
        self,
        found: Head,
        raw: dict[str, Any],
        model: type[Order],
        work: Callable[[Order, Stop], BaseModel | None],
        stop: Stop,
    ) -> BaseModel | None:
        """Errors: NodeFault."""
        try:
            order = parsed(raw, model, self.settings.node)
        except NodeFault as fault:
            if fault.kind == "version":
                self.reporter.refused = raw.get("version")
            log.warning("an order is refused: %s. %s", fault.message, fault.advice)
            raise
        self.reporter.refused = None
        if not found.attempt_known:
            raise NodeFault("order", f"the order's attempt {raw.get('attempt')!r} is no number", "")
        self._started(found.key)
        return work(order, stop)

    def _answer(self, found: Head, stop: Stop, work: Callable[[], BaseModel | None], trace: object) -> None:
        """Works and sends what came of it. Whatever ends it without a result, the service hears of it."""
        node = self.settings.node
        with self.keeper.holding(found.key), self.tracing.order(found, trace if isinstance(trace, str) else "") as tell:
            if self.stopping.is_set():
                stop.press(STOPPED)
            fault = Fault(kind="worker", message="the worker failed", advice=f"See the log of {node}.")
            result: BaseModel | None = failure(found, node, fault)
            try:
                result = work()
            except NodeFault as error:
                result = failure(found, node, fault_of(error))
            finally:
                tell(result)
                if result is not None:
                    self.outgoing.deliver(RESULTS[found.kind], result.model_dump(mode="json"))

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
        stop, order = adopted.stop, adopted.resumed.kept.order
        found = Head("probe", order.probe, order.attempt, True, order.bisection)
        with bound_contextvars(**found.bound):
            self._answer(found, stop, lambda: self.pipeline.resume(adopted.resumed, stop), order.trace)

    def _probe(self, order: ProbeOrder, stop: Stop) -> ProbeResult | None:
        """Errors: NodeFault, for one that came although this node is taken out."""
        if self.keeper.is_out():
            message = f"{self.settings.node} is taken out, and takes no probe"
            raise NodeFault("node-out", message, "Put it back in, or leave it to other nodes.")
        key = ("probe", order.probe, order.attempt)
        return self.pipeline.probe(order, stop, lambda: self._started(key, leased=True))

    def _started(self, key: Key, *, leased: bool = False) -> None:
        kind, id, attempt = key
        message = Started(kind=kind, id=id, attempt=attempt, node=self.settings.node, leased=leased)
        with contextlib.suppress(Unreachable):
            self._send(Task.STARTED, message.model_dump(mode="json"))

    def report(self, event: Event, held: Iterable[Held] = ()) -> bool:
        """Whether it was sent."""
        message = self.reporter.report(event, self.keeper.service, self.unseen.facts(), held)
        try:
            self._send(Task.NODE, message.model_dump(mode="json"))
        except Unreachable:
            return False
        return True

    def boot(self) -> None:
        """Tells the service, once, that nothing runs here any more but what is named: also late, where the broker was
        away, and then with what was begun meanwhile. What only waits to be recorded is not to be run again either."""
        with self.booting:
            if not self.booted:
                with contextlib.suppress(Unreachable):
                    self.outgoing.look()
                begun = {each.held for each in self.adopted} | set(self.keeper.held())
                self.booted = self.report("booted", sorted(begun, key=lambda each: (each.kind, each.id)))

    def _beat(self) -> None:
        self.unseen.look()
        if self.booted:
            self.report("alive")
        else:
            self.boot()
        self.outgoing.flush()

    def _send(self, task: str, message: dict[str, Any]) -> None:
        try:
            self.sender.send_task(task, args=[message], queue=Queue.CONTROL, retry=False, ignore_result=True)
        except (kombu.exceptions.OperationalError, redis.RedisError, OSError) as error:
            raise Unreachable(str(error)) from error

    def _look(self, keys: Sequence[Key]) -> Look:
        try:
            return Look(*recorded(self.redis, keys))
        except (redis.RedisError, OSError, UnicodeError) as error:
            raise Unreachable(str(error)) from error

    def start(self) -> int:
        """Works until SIGTERM or SIGINT; the exit status, which is not 0 when the broker sent what cannot be read."""
        # It names an option that this command does not have; what orders run is not root's.
        warnings.filterwarnings("ignore", category=SecurityWarning)
        signals.worker_ready.connect(self._ready, weak=False)
        self.live.start()
        self.pulse.start()
        self.tidy.start()
        worker = queues.quiet(self.app.Worker, self._shutting_down)(
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
        self.tidy.close()
        self.keeper.close()
        self.live.close()
        self.tracing.close()
        self.report("left")
        self.pipeline.site.bin.wait(REMOVE_S)
        for sandbox in self.pipeline.site.sandboxes.values():
            sandbox.close()
        return int(worker.exitcode or broken.is_set())

    def _ready(self, **_: Any) -> None:
        self.boot()
        self.outgoing.flush()

    def _shutting_down(self) -> None:
        self.stopping.set()
        self.keeper.press_all(STOPPED)
        last = threading.Timer(SHUTDOWN_S, os._exit, (1,))
        last.daemon = True
        last.start()


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
