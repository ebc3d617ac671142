"""A commit that is tried: the reproduction's run, and the control's when that did not end well. Each can be gone on
with by a worker that finds its container still there."""

from __future__ import annotations

import time
from dataclasses import dataclass

from worker.contract import Outcome, Phase, ProbeOrder, Reproduction
from worker.errors import fault_of
from worker.pipeline.environment import Supply, check_installer
from worker.pipeline.kept import Kept, keep
from worker.pipeline.leases import Lease, Watched
from worker.pipeline.outcomes import Wanted, facts_of, measured, outcome, packages_of, spoken
from worker.pipeline.runs import Run, Site, Task, attach, execute
from worker.run import machine
from worker.run.job import Job
from worker.run.sandbox import Left, Sandbox
from worker.run.stop import Stop
from worker.spans import part

#: What both runs get of what was fetched.
INPUTS = ("tree.tar",)
SKIP = 125


@dataclass(frozen=True)
class Trial:
    """What both runs have in common. `began`: when the order was taken; `wheel`: its name in the job."""

    site: Site
    order: ProbeOrder
    sandbox: Sandbox
    began: float
    wheel: str | None
    supply: Supply
    lease: Lease

    @property
    def name(self) -> str:
        return f"{self.order.probe}.{self.order.attempt}"


def tried(trial: Trial, job: Job, stop: Stop) -> Outcome:
    """Errors: NodeFault, Stopped."""
    return _controlled(trial, job, _begun(trial, job, None, stop), stop)


def gone_on(trial: Trial, job: Job, kept: Kept, left: Left, stop: Stop) -> Outcome:
    """`left`: what its sandbox found of it. Errors: NodeFault, Stopped."""
    with trial.lease.watching(job, kept.run_at) as watched:
        run = attach(trial.site, job, trial.sandbox, _task(trial, job, kept), left, stop)
    found = _finished(trial, job, kept, run, watched)
    if kept.outcome is not None:
        return kept.outcome.model_copy(update={"control": found})
    return _controlled(trial, job, found, stop)


def _controlled(trial: Trial, job: Job, found: Outcome, stop: Stop) -> Outcome:
    if trial.order.control is None or not failed(found):
        return found
    with part("control"), trial.site.job(f"{trial.name}.control", trial.sandbox) as second:
        _share(trial, job, second)
        return found.model_copy(update={"control": _begun(trial, second, found, stop)})


def failed(found: Outcome) -> bool:
    """Whether a bad may be made of it, so that the control is asked for."""
    if found.told is not None and found.told.verdict != "good":
        return found.told.verdict == "bad"
    if found.timed_out or found.out_of_memory or found.signal is not None or found.ready is False:
        return True
    return found.exit_status not in (None, 0, SKIP)


def _share(trial: Trial, job: Job, other: Job) -> None:
    """Gives a second job what was fetched for the first. Errors: NodeFault."""
    for name in (*INPUTS, *([trial.wheel] if trial.wheel else [])):
        source, target = job.inputs / name, other.inputs / name
        try:
            if source.exists():
                target.hardlink_to(source)
        except OSError as error:
            raise fault_of(error, f"writing {target}") from error


def _begun(trial: Trial, job: Job, before: Outcome | None, stop: Stop) -> Outcome:
    """Runs the reproduction, or the control when there is what the reproduction came to before."""
    kept = Kept(
        order=trial.order,
        began=trial.began if before is None else time.time(),
        wheel=trial.wheel,
        work=trial.supply.work,
        before=trial.supply.phases if before is None else (),
        environment=trial.supply.key,
        gpus=trial.lease.gpus,
        facts={**machine.facts(), **trial.lease.facts()},
        outcome=before,
        leased_at=trial.lease.since,
        run_at=time.time(),
        used_s=trial.lease.meter.used_s,
    )
    keep(job, kept)
    with trial.lease.watching(job) as watched:
        run = execute(trial.site, job, trial.sandbox, _task(trial, job, kept), stop)
    return _finished(trial, job, kept, run, watched)


def _reproduction(kept: Kept) -> Reproduction:
    control = kept.order.control
    return kept.order.reproduction if kept.outcome is None or control is None else control


def _task(trial: Trial, job: Job, kept: Kept) -> Task:
    order, reproduction = trial.order, _reproduction(kept)
    work = {
        "wheel": kept.wheel,
        "script": reproduction.script,
        "serve": reproduction.serve.model_dump() if reproduction.serve else None,
        "check": reproduction.check,
        "failure": reproduction.failure,
        "metric": bool(order.metrics),
        "warmup": order.warmup,
        **kept.work,
    }
    labels = {"kind": "probe", "bisection": order.bisection, "probe": order.probe, "job": job.root.name}
    return Task(order, work, labels, kept.began, environment=trial.supply.folder, gpus=kept.gpus)


def _finished(trial: Trial, job: Job, kept: Kept, run: Run, watched: Watched) -> Outcome:
    """Errors: NodeFault."""
    held = trial.lease.held(watched)  # at once, before anybody else can come
    order, reproduction = trial.order, _reproduction(kept)
    own = packages_of(job.inputs / kept.wheel) if kept.wheel else ()
    name = trial.name if kept.outcome is None else f"{trial.name}.control"
    last = "script" if reproduction.script is not None else "check"
    project = tuple(dict.fromkeys((*order.project, *own)))
    found = outcome(trial.site, run, Wanted(name, last, reproduction.failure, project=project))
    if found.ended_in == "install" and found.exit_status:
        check_installer(run)
    facts = {**kept.facts, **facts_of(order), **watched.gauge.facts(*run.counted()), **held}
    more = {
        "phases": _joined(found.phases, kept.before),
        "environment": {**found.environment, **facts},
        "measurements": measured(run, job, order),
        **spoken(run, reproduction),
    }
    return found.model_copy(update=more)


def _joined(phases: tuple[Phase, ...], before: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """What was done before the run began counts as its fetch, but for what has phases of its own."""
    if not phases:
        return before
    fetch, rest = phases[0], phases[1:]
    seconds = max(0.0, fetch.seconds - sum(phase.seconds for phase in before))
    return (fetch.model_copy(update={"seconds": seconds}), *before, *rest)
