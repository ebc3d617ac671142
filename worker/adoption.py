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
from worker.run.job import Job, leftovers
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


@dataclass
class Unseen:
    """Job folders in which containers may go on, while their engine does not answer. They are removed when it does:
    nobody has held their leases, so that the service gave them back."""

    site: Site
    folders: tuple[Path, ...] = ()

    def look(self) -> None:
        try:
            for sandbox in self.site.sandboxes.values():
                sandbox.settle()
        except NodeFault:
            return
        for folder in self.folders:
            self.site.bin.throw(folder)
        self.folders = ()

    def facts(self) -> dict[str, str]:
        names = ", ".join(sorted(folder.name for folder in self.folders))
        return {"docker.left": f"the container engine did not answer when the worker started: {names}"} if names else {}


def adopt(site: Site, keeper: Keeper) -> tuple[tuple[Adopted, ...], Unseen]:
    """Finds what goes on, with its leases; removes all else that was left in sandboxes and job folders."""
    found: list[Adopted] = []
    silent = False
    for sandbox in site.sandboxes.values():
        found += _of(site, sandbox, keeper)
        silent |= not _orphans_removed(sandbox, found)
    jobs = {job.root: job for job in map(Job, leftovers(site.work_dir / "jobs"))}
    for each in found:
        jobs.pop(each.resumed.job.root, None)
    unseen = Unseen(site, tuple(root for root, job in jobs.items() if silent and job.container.exists()))
    for root in jobs.keys() - set(unseen.folders):
        site.bin.throw(root)
    if unseen.folders:
        log.warning("%s. It is asked again, and what is left is removed then", unseen.facts()["docker.left"])
    return tuple(found), unseen


def _of(site: Site, sandbox: Sandbox, keeper: Keeper) -> list[Adopted]:
    try:
        # Of one probe there may be two, where the first could not be removed; then it is the control that goes on.
        left = sorted(sandbox.left(), key=lambda each: not each.labels.get("job", "").endswith(".control"))
    except NodeFault as fault:
        log.warning("the %s sandbox does not work here: %s. %s", sandbox.kind, fault.message, fault.advice)
        return []
    return [adopted for each in left if (adopted := _taken(site, each, keeper)) is not None]


def _orphans_removed(sandbox: Sandbox, found: list[Adopted]) -> bool:
    """False when that must wait until the sandbox works."""
    try:
        removed = sandbox.remove_orphans([adopted.resumed.left for adopted in found])
    except NodeFault:
        return False
    log.info("%s sandbox: of an earlier worker %d runs go on, %d were removed", sandbox.kind, len(found), removed)
    return True


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
        log.info("%s %s.%s was cancelled meanwhile, or has ended", *key)
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
