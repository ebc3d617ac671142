"""A probe that another life of this worker began, taken up again: what it holds of the node, and its end."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from worker.contract import Outcome
from worker.pipeline.environment import Supply
from worker.pipeline.kept import Kept
from worker.pipeline.leases import leased_again
from worker.pipeline.meter import Meter
from worker.pipeline.runs import Site
from worker.pipeline.trial import Trial, gone_on
from worker.run.job import Job
from worker.run.sandbox import Left
from worker.run.stop import Stop


@dataclass(frozen=True)
class Resumed:
    """Holds its environment and its GPUs until it was finished, or let go. `left`: what its sandbox found of it."""

    trial: Trial
    job: Job
    kept: Kept
    left: Left
    holds: contextlib.ExitStack

    @property
    def meter(self) -> Meter:
        return self.trial.lease.meter

    def finish(self, stop: Stop) -> Outcome:
        """Errors: NodeFault, Stopped."""
        with self.holds, self.trial.site.again(self.job):
            return gone_on(self.trial, self.job, self.kept, self.left, stop)


def resumed(site: Site, job: Job, kept: Kept, left: Left, stop: Stop) -> Resumed:
    """Errors: NodeFault, Stopped."""
    site.secrets_of(kept.order)  # its control will want them
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(site.environments.again(kept.environment)) if kept.environment else None
        meter = Meter(used_s=kept.used_s)
        lease = stack.enter_context(leased_again(site, kept.gpus, kept.leased_at, stop, meter))
        supply = Supply(folder, kept.work, kept.before)
        sandbox = site.sandbox(kept.order.sandbox)
        trial = Trial(site, kept.order, sandbox, kept.began, kept.wheel, supply, lease)
        return Resumed(trial, job, kept, left, stack.pop_all())
    raise AssertionError  # no manager above swallows an error
