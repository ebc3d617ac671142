"""What a former life of this worker left: runs whose containers went on without it are taken up again."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from worker.contract import Held, ProbeOrder
from worker.errors import NodeFault, Stopped
from worker.node import Keeper, Key
from worker.pipeline import Site
from worker.pipeline.kept import Kept, read
from worker.pipeline.resume import Resumed, resumed
from worker.run.job import Job, delete_leftovers
from worker.run.sandbox import Left, Sandbox
from worker.run.stop import Stop

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Adopted:
    """A run that goes on, or ended meanwhile and waits to be told of."""

    resumed: Resumed
    stop: Stop

    @property
    def key(self) -> Key:
        return _key(self.resumed.kept.order)

    @property
    def held(self) -> Held:
        order = self.resumed.kept.order
        return Held(kind="probe", id=order.probe, attempt=order.attempt)


def adopt(site: Site, keeper: Keeper) -> tuple[Adopted, ...]:
    """Finds what goes on, with its leases; removes all else that was left in sandboxes and job folders."""
    found: list[Adopted] = []
    for sandbox in site.sandboxes.values():
        try:
            found += _of(site, sandbox, keeper)
        except NodeFault as fault:
            log.warning("the %s sandbox does not work here: %s. %s", sandbox.kind, fault.message, fault.advice)
    delete_leftovers(site.work_dir / "jobs", {each.resumed.job.root for each in found})
    return tuple(found)


def _of(site: Site, sandbox: Sandbox, keeper: Keeper) -> list[Adopted]:
    """Errors: NodeFault."""
    # Of one probe there may be two, where the first could not be removed; then it is the control that goes on.
    left = sorted(sandbox.left(), key=lambda each: not each.labels.get("job", "").endswith(".control"))
    taken = [adopted for each in left if (adopted := _taken(site, each, keeper)) is not None]
    removed = sandbox.remove_orphans([adopted.resumed.left for adopted in taken])
    log.info("%s sandbox: %d runs of an earlier worker go on, %d were removed", sandbox.kind, len(taken), removed)
    return taken


def _taken(site: Site, left: Left, keeper: Keeper) -> Adopted | None:
    """None for what is not to go on, or cannot: builds, what was cancelled, orders that cannot be read."""
    if left.labels.get("kind") != "probe":
        return None
    job = Job(site.work_dir / "jobs" / Path(left.labels.get("job", "none")).name)
    kept = read(job)
    if kept is None:
        log.warning("the container %s is of no order that this worker can read", left.id[:12])
        return None
    key, stop = _key(kept.order), Stop()
    if not keeper.again(key, stop):
        log.info("%s %s.%s was cancelled meanwhile", *key)
        return None
    adopted = _resumed(site, job, kept, left, stop)
    if adopted is None:
        keeper.drop(key)
    return adopted


def _resumed(site: Site, job: Job, kept: Kept, left: Left, stop: Stop) -> Adopted | None:
    try:
        return Adopted(resumed(site, job, kept, left, stop), stop)
    except (NodeFault, Stopped) as error:
        log.warning("probe %s.%s cannot go on: %s", kept.order.probe, kept.order.attempt, error)
        return None


def _key(order: ProbeOrder) -> Key:
    return ("probe", order.probe, order.attempt)
