"""fetch -> install and run, then observe: one commit tried once."""

from __future__ import annotations

import time

from worker.build import wheels
from worker.contract import Outcome, ProbeOrder
from worker.errors import NodeFault
from worker.pipeline.runs import Site, Task, Wanted, execute, outcome
from worker.run.job import Job
from worker.run.stop import Stop


def probe(site: Site, order: ProbeOrder, stop: Stop) -> Outcome:
    """Errors: NodeFault, Stopped."""
    began, sandbox = time.time(), site.sandbox(order.sandbox)
    with site.job(f"{order.probe}.{order.attempt}", sandbox) as job:
        reproduction = order.reproduction
        work = {
            "wheel": _fetch(site, order, job, stop),
            "script": reproduction.script,
            "serve": reproduction.serve.model_dump() if reproduction.serve else None,
            "check": reproduction.check,
            "failure": reproduction.failure,
        }
        labels = {"kind": "probe", "bisection": order.bisection, "probe": order.probe}
        run = execute(site, job, sandbox, Task(order, work, labels, began), stop)
        last = "script" if reproduction.script is not None else "check"
        return outcome(site, run, Wanted(f"logs/{order.probe}.{order.attempt}.log", last, reproduction.failure))


def _fetch(site: Site, order: ProbeOrder, job: Job, stop: Stop) -> str | None:
    """Brings the wheel into the job, or the tree when there is none; the wheel's name."""
    if order.wheel is None:
        site.sources.archive(order.source, job.inputs / "tree.tar", stop)
        return None
    wheel = order.wheel.rpartition("/")[2]
    try:
        wheels.check_name(wheel)
    except wheels.NoWheel as error:
        raise NodeFault("order", str(error), "") from error
    site.store.get(order.wheel, job.inputs / wheel, order.wheel_sha256)
    return wheel
