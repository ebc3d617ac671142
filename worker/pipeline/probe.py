"""fetch -> environment -> install and run, then observe: one commit tried once."""

from __future__ import annotations

import time

from worker.build import wheels
from worker.contract import Outcome, Phase, ProbeOrder
from worker.errors import FixupFails, NodeFault
from worker.pipeline.environment import NotInstalled, Probe, Supply, check_installer, supplied
from worker.pipeline.fixups import refused
from worker.pipeline.runs import Site, Task, Wanted, execute, outcome
from worker.run.job import Job
from worker.run.stop import Stop


def probe(site: Site, order: ProbeOrder, stop: Stop) -> Outcome:
    """Errors: NodeFault, Stopped."""
    began, sandbox = time.time(), site.sandbox(order.sandbox)
    with site.job(f"{order.probe}.{order.attempt}", sandbox) as job:
        try:
            wheel = _fetch(site, order, job, stop)
        except FixupFails as error:
            return refused(site, job, error, f"{order.probe}.{order.attempt}", began)
        about = Probe(site, order, sandbox, job, began)
        try:
            with supplied(about, job.inputs / wheel if wheel else None, stop) as supply:
                return _run(about, wheel, supply, stop)
        except NotInstalled as error:
            return error.outcome


def _run(probe: Probe, wheel: str | None, supply: Supply, stop: Stop) -> Outcome:
    order, reproduction = probe.order, probe.order.reproduction
    work = {
        "wheel": wheel,
        "script": reproduction.script,
        "serve": reproduction.serve.model_dump() if reproduction.serve else None,
        "check": reproduction.check,
        "failure": reproduction.failure,
        **supply.work,
    }
    labels = {"kind": "probe", "bisection": order.bisection, "probe": order.probe}
    task = Task(order, work, labels, probe.began, environment=supply.folder)
    run = execute(probe.site, probe.job, probe.sandbox, task, stop)
    last = "script" if reproduction.script is not None else "check"
    found = outcome(probe.site, run, Wanted(f"{order.probe}.{order.attempt}", last, reproduction.failure))
    if found.ended_in == "install" and found.exit_status:
        check_installer(run)
    return found.model_copy(update={"phases": _joined(found.phases, supply.phases)})


def _joined(phases: tuple[Phase, ...], before: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """What was done before the run began counts as its fetch, but for what has phases of its own."""
    if not phases:
        return before
    fetch, rest = phases[0], phases[1:]
    seconds = max(0.0, fetch.seconds - sum(phase.seconds for phase in before))
    return (fetch.model_copy(update={"seconds": seconds}), *before, *rest)


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
