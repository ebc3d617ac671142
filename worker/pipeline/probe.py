"""fetch -> environment -> lease GPUs -> run -> finish: one commit tried once."""

from __future__ import annotations

import time

from worker.build import wheels
from worker.contract import Outcome, ProbeOrder
from worker.errors import FixupFails, NodeFault
from worker.pipeline.environment import NotInstalled, Probe, supplied
from worker.pipeline.fixups import refused
from worker.pipeline.leases import leased
from worker.pipeline.meter import Meter
from worker.pipeline.runs import Site
from worker.pipeline.trial import Trial, tried
from worker.run.job import Job
from worker.run.processors import pinned
from worker.run.stop import Stop
from worker.spans import part


def probe(site: Site, order: ProbeOrder, stop: Stop, meter: Meter) -> Outcome:
    """Errors: NodeFault, Stopped."""
    began, sandbox = time.time(), site.sandbox(order.sandbox)
    # Before anything is done for a run that cannot have them.
    site.secrets_of(order)
    pinned(order.limits.cpuset, order.limits.numa)
    with site.job(f"{order.probe}.{order.attempt}", sandbox) as job:
        try:
            wheel = _fetch(site, order, job, stop)
        except FixupFails as error:
            return refused(site, job, error, f"{order.probe}.{order.attempt}", began)
        about = Probe(site, order, sandbox, job, began)
        try:
            # GPUs come last: nobody shall wait for those that an installer holds.
            with (
                supplied(about, job.inputs / wheel if wheel else None, stop) as supply,
                leased(site, order, stop, meter) as lease,
            ):
                return tried(Trial(site, order, sandbox, began, wheel, supply, lease), job, stop)
        except NotInstalled as error:
            return error.outcome


def _fetch(site: Site, order: ProbeOrder, job: Job, stop: Stop) -> str | None:
    """Brings the wheel into the job, or the tree when there is none; the wheel's name."""
    with part("fetch"):
        return _brought(site, order, job, stop)


def _brought(site: Site, order: ProbeOrder, job: Job, stop: Stop) -> str | None:
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
