"""Entry: the control worker. It consumes what workers report and what doors post, and keeps the sweep ticking."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import redis
from celery import Celery, signals
from kombu.exceptions import OperationalError
from pydantic import TypeAdapter, ValidationError

from service.adapters.probe_queue import CeleryQueue
from service.adapters.telemetry.handling import PUT_BACK, Handling, beating, name_of_this
from service.adapters.telemetry.meters import BUSY, Meters
from service.adapters.telemetry.pulse import Pulse
from service.application.flow import Flow
from service.application.ports import QueueUnavailable, StoreBusy
from service.domain.bisection import Gpu, Node
from service.domain.errors import NotFound
from service.domain.results import BuildReport, ProbeReport, SurveyReport
from service.strangers import Sender, Stranger, Unreadable, about_what, printable, stranger
from worker import contract
from worker.contract import Queue, Task

Handle = Callable[[Flow, Any], None]
M = TypeVar("M", bound=contract.Message)
log = logging.getLogger(__name__)
SWEEP = "firstbad.sweep"
#: Preparations may take minutes (a first clone); reports must not wait behind them.
THREADS = 8
#: Seconds that a report is held while the database cannot take it, and the pauses between two tries.
PATIENCE_S = 600.0
FIRST_PAUSE_S = 0.1
#: Seconds between two looks for what webhooks are to be told.
TELL_S = 1.0
LAST_PAUSE_S = 10.0
#: What comes back by itself.
AWAY = (StoreBusy, QueueUnavailable, redis.RedisError)
#: Kind and name of what a result is of.
RESULTS = {Task.PROBED: ("probe", "probe"), Task.BUILT: ("build", "key"), Task.SURVEYED: ("survey", "bisection")}
_PROBE_REPORT = TypeAdapter(ProbeReport)
_BUILD_REPORT = TypeAdapter(BuildReport)
_SURVEY_REPORT = TypeAdapter(SurveyReport)


class Patience:
    """Tries until the database can do it: a report is acknowledged when it comes, so here is the only one there is."""

    def __init__(self, ended: threading.Event, most_s: float = PATIENCE_S) -> None:
        self._ended, self._most_s = ended, most_s

    def __call__(self, call: Callable[[], None]) -> None:
        """Errors: StoreBusy, when it takes too long or this process is to end."""
        give_up, pause_s = monotonic() + self._most_s, FIRST_PAUSE_S
        while True:
            try:
                return call()
            except StoreBusy as error:
                if monotonic() + pause_s > give_up or self._ended.wait(pause_s):
                    raise
                log.warning("%s; trying it again", error)
            pause_s = min(2 * pause_s, LAST_PAUSE_S)


def control_app(
    redis_url: str, flow: Flow, queue: CeleryQueue, patience: Patience, handling: Handling | None = None
) -> Celery:
    """A Celery application that consumes the control queue by calling the flow."""
    app = Celery("firstbad-control", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        # A message is acknowledged when it is read: that Redis keeps a list of what was read took more time than the
        # work itself. As many as there are threads are read ahead, else a free thread waits for the next second; what
        # a killed process had read comes again, since workers keep results until they are recorded.
        # A connection that dies without a word is noticed in seconds, and not when the kernel gives it up.
        broker_transport_options={"ack_emulation": False, "socket_connect_timeout": 5.0, "socket_timeout": 15.0},
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_default_queue=str(Queue.CONTROL),
    )
    _register(app, flow, queue, patience, handling or Handling(Meters(), pulse(flow, 0.0)))
    return app


def pulse(flow: Flow, sweep_s: float) -> Pulse:
    """Of this process."""
    return Pulse(name_of_this(), THREADS, sweep_s, flow.ports.clock.now)


def _register(app: Celery, flow: Flow, queue: CeleryQueue, patience: Patience, handling: Handling) -> None:
    def prepare(id: object) -> None:
        if not isinstance(id, str) or not contract.is_name(id):
            log.warning("the preparation of what has no name is dropped: %.80r", id)
            return
        with handling.message("prepare", {"bisection": id}, slow=True), queue.preparing(id):
            _known(lambda: patience(lambda: flow.prepare(id)), id)

    def prepare_failed(self: object, error: BaseException, task_id: str, args: list[str], *rest: object) -> None:
        """What is only away is no failure: the sweep has it prepared again."""
        if isinstance(error, AWAY):
            log.warning("the preparation of %s waits for the sweep: %s", args[0], error)
        else:
            patience(lambda: flow.failed(args[0], error))

    def sweep() -> None:
        with handling.message("sweep", {}) as say:
            try:
                flow.sweep()
                handling.swept()
                queue.say_version()
            except AWAY as error:
                say(BUSY)
                log.warning("no sweep now: %s", error)

    app.task(prepare, name=str(Task.PREPARE), shared=False, on_failure=prepare_failed)
    app.task(sweep, name=SWEEP, shared=False)
    for task, handle in HANDLES.items():
        receive = _handler(app, task, partial(handle, flow), partial(_done, queue, task), patience, handling)
        app.task(receive, name=str(task), shared=False)


def _handler(
    app: Celery,
    task: Task,
    handle: Callable[[Any], None],
    done: Callable[[Any], None],
    patience: Patience,
    handling: Handling,
) -> Callable[[dict[str, Any]], None]:
    """A result is acknowledged to its worker by `done`, which sends it again when this process dies before that. What
    breaks here is not: it may be mended, and the worker gives up some time."""

    def receive(payload: Any) -> None:
        with handling.message(task.name.lower(), about(payload)) as say:
            try:
                patience(lambda: handle(payload))
            except StoreBusy:
                say(PUT_BACK)
                log.warning("a report goes back into the queue: %s", task)
                app.send_task(str(task), args=[payload], queue=str(Queue.CONTROL), retry=False, ignore_result=True)
                return
            done(payload)

    return receive


def _done(queue: CeleryQueue, task: Task, payload: Any) -> None:
    """Where a broker that is away is not told, the result comes again, and is known then."""
    kind, name = RESULTS.get(task, ("", ""))
    named = about_what(payload, name)
    if named is None:
        return
    try:
        queue.done((kind, *named))
    except QueueUnavailable as error:
        log.warning("that %s %s.%s is recorded was not told: %s", kind, *named, error)


def about(payload: Any) -> dict[str, str]:
    """The ids of what a report is about, as its log lines have them."""
    if not isinstance(payload, dict):
        return {}
    probe, build = payload.get("probe", ""), payload.get("key", "")
    if payload.get("kind") in ("probe", "build"):
        probe, build = (payload.get("id", "") if payload["kind"] == kind else "" for kind in ("probe", "build"))
    bisection = payload.get("bisection") or str(probe).rpartition(".")[0]
    found = {"bisection": bisection, "probe": probe, "build": build}
    found |= {name: payload.get(name, "") for name in ("attempt", "node")}
    return {name: printable(str(value)[:200]) for name, value in found.items() if value not in ("", None)}


def started(flow: Flow, payload: Any) -> None:
    message = _read(flow, contract.Started, payload)
    if not isinstance(message, Sender):
        about_it = (message.kind, message.id, message.attempt, message.node)
        _known(lambda: flow.started(*about_it, leased=message.leased), message.id)


def probed(flow: Flow, payload: Any) -> None:
    message = _read(flow, contract.ProbeResult, payload)
    if isinstance(message, Sender):
        if (named := message.about("probe")) is not None:
            refused = ProbeReport(*named, message.node, fault=message.fault())
            _known(lambda: flow.probed(refused), refused.probe)
        return
    report = _PROBE_REPORT.validate_python(_plain(message))
    _known(lambda: flow.probed(report), report.probe)


def built(flow: Flow, payload: Any) -> None:
    message = _read(flow, contract.BuildResult, payload)
    if isinstance(message, Sender):
        if (named := message.about("key")) is not None:
            refused = BuildReport(*named, message.node, 0.0, fault=message.fault())
            _known(lambda: flow.built(refused), refused.key)
        return
    report = _BUILD_REPORT.validate_python(_plain(message))
    _known(lambda: flow.built(report), report.key)


def surveyed(flow: Flow, payload: Any) -> None:
    message = _read(flow, contract.SurveyResult, payload)
    if isinstance(message, Sender):
        if (named := message.about("bisection")) is not None:
            refused = SurveyReport(*named, message.node, fault=message.fault())
            _known(lambda: flow.surveyed(refused), refused.bisection)
        return
    report = _SURVEY_REPORT.validate_python(_plain(message))
    _known(lambda: flow.surveyed(report), report.bisection)


def node(flow: Flow, payload: Any) -> None:
    message = _read(flow, contract.NodeReport, payload)
    if isinstance(message, Sender):
        return
    state = "left" if message.event == "left" else "alive"
    now = flow.ports.clock.now()
    gpus = tuple(Gpu(gpu.index, gpu.model, contract.gpu_class(gpu.model), gpu.memory_bytes) for gpu in message.gpus)
    found = Node(message.node, message.slots, now, state, message.roles, message.facts, gpus)
    found = replace(found, labels=message.labels, models=message.models)
    adopted = frozenset((held.kind, held.id, held.attempt) for held in message.adopted)
    flow.node(found, booted=message.event == "booted", adopted=adopted)


def _read(flow: Flow, kind: type[M], payload: Any) -> M | Sender:
    """The report, or the sender of one that cannot be read. A node whose messages are of another version gets no probes
    from then on, and is listed with why."""
    sender: Sender | None = stranger(payload, contract.VERSION)
    if sender is None:
        try:
            return kind.model_validate(payload)
        except ValidationError as error:
            sender = Unreadable(payload, _wrong(error))
    log.warning("a report cannot be read: %s", sender.fault().message)
    if isinstance(sender, Stranger) and sender.node:
        flow.stranger(sender.node, sender.why, left=sender.left)
    return sender


def _wrong(error: ValidationError) -> str:
    several = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in several)


HANDLES: dict[Task, Handle] = {
    Task.STARTED: started,
    Task.PROBED: probed,
    Task.BUILT: built,
    Task.SURVEYED: surveyed,
    Task.NODE: node,
}


def _known(call: Callable[[], None], id: str) -> None:
    """What comes about something that this database does not hold is another service's, or an erased one's."""
    try:
        call()
    except NotFound as error:
        log.warning("a message about %s is dropped: %s", id, error)


def _plain(message: contract.ProbeResult | contract.BuildResult | contract.SurveyResult) -> dict[str, Any]:
    return message.model_dump(exclude={"version"})


def run(redis_url: str, flow: Flow, queue: CeleryQueue, sweep_s: float, meters: Meters | None = None) -> None:
    """Consumes until SIGTERM. Errors: SystemExit, when it breaks, so that whoever keeps it up starts it again."""
    ended, beats = threading.Event(), pulse(flow, sweep_s)
    app = control_app(redis_url, flow, queue, Patience(ended), Handling(meters or Meters(), beats))
    ticker = threading.Thread(target=_tick, args=(app, sweep_s, ended), daemon=True)
    signals.worker_ready.connect(lambda **_: ticker.start(), weak=False)
    teller = threading.Thread(target=_tell, args=(flow, ended), daemon=True)
    signals.worker_ready.connect(lambda **_: teller.start(), weak=False)
    signals.worker_shutting_down.connect(lambda **_: ended.set(), weak=False)
    # With a receiver Celery leaves log lines as they are.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    worker = app.Worker(
        pool="threads",
        concurrency=THREADS,
        queues=[str(Queue.CONTROL)],
        hostname="control@%h",
        loglevel="INFO",
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
        quiet=True,
    )
    with beating(beats, flow.beat, flow.beats_no_more):
        worker.start()
    if worker.exitcode:
        raise SystemExit(worker.exitcode)


def _tell(flow: Flow, ended: threading.Event) -> None:
    """In a thread of its own: whoever is slow to take what is told holds nothing else up."""
    while not ended.wait(TELL_S):
        try:
            flow.deliver_notices()
        except AWAY as error:
            log.warning("webhooks are not told now: %s", error)


def _tick(app: Celery, sweep_s: float, ended: threading.Event) -> None:
    """A sweep that could not start before the next tick is dropped."""
    while not ended.is_set():
        try:
            app.send_task(SWEEP, queue=str(Queue.CONTROL), expires=sweep_s, retry=False, ignore_result=True)
        except (OperationalError, redis.RedisError, OSError) as error:
            log.warning("no sweep now: %s", error)
        ended.wait(sweep_s)
