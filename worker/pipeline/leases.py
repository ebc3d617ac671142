"""The GPUs of a probe: leased for its runs, looked at before and after."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from worker.contract import Gpu, ProbeOrder
from worker.gpus import Gauge, Gpus, Watch, gauging, watching
from worker.pipeline.meter import Meter
from worker.pipeline.runs import Site
from worker.run.job import Job
from worker.run.stop import Stop
from worker.spans import part


@dataclass(frozen=True)
class Watched:
    """What was seen of leased cards during a run."""

    watch: Watch
    gauge: Gauge


@dataclass(frozen=True)
class Lease:
    """`gpus`: the leased ones; none for a probe that wants none. `since`: seconds of the epoch, when they were."""

    node: Gpus
    gpus: tuple[Gpu, ...] = ()
    since: float = 0.0
    meter: Meter = field(default_factory=Meter)

    def facts(self) -> dict[str, str]:
        """Before a run: what they are, and how much of the memory of the fullest one is free."""
        if not self.gpus:
            return {}
        free = min(gpu.memory_bytes - self.node.cards.use(gpu).memory_bytes for gpu in self.gpus)
        found = {
            "gpus": ", ".join(f"{gpu.index}: {gpu.model}" for gpu in self.gpus),
            "gpu_indexes": ",".join(str(gpu.index) for gpu in self.gpus),
            "gpu_free_bytes": str(free),
        }
        return {**found, "driver": self.node.driver} if self.node.driver else found

    @contextlib.contextmanager
    def watching(self, job: Job, since: float | None = None) -> Iterator[Watched]:
        """During the run in `job`, whose folder is mounted in its sandbox, or else is its home.

        `since`: seconds of the epoch, when a run began that is taken up again.
        """
        marks = (f"/{job.root.parent.name}/{job.root.name}/{part}" for part in ("out", "work"))
        cards, gpus = self.node.cards, self.gpus
        seen = watching(cards, gpus, tuple(mark.encode() for mark in marks))
        with seen as watch, gauging(cards, gpus) as gauge, self.meter.running(since):
            yield Watched(watch, gauge)

    def held(self, watched: Watched) -> dict[str, str]:
        """After a run: who has something in their memory, which is nothing of the run any more, or had it meanwhile."""
        holder = "; ".join(filter(None, (self.node.held_by(self.gpus), watched.watch.held())))
        return {"gpu_held_by": holder} if holder else {}


@contextlib.contextmanager
def leased(site: Site, order: ProbeOrder, stop: Stop, meter: Meter) -> Iterator[Lease]:
    """Errors: NodeFault, also when this node does not have such; Stopped."""
    wanted = order.gpus if order.gpus is not None and order.gpus.count > 0 else None
    with contextlib.ExitStack() as stack:
        with part("gpus") if wanted is not None else contextlib.nullcontext():
            gpus = stack.enter_context(site.gpus.lease(wanted, stop))
        stack.enter_context(meter.leasing(len(gpus)))
        yield Lease(site.gpus, gpus, time.time(), meter)


@contextlib.contextmanager
def leased_again(site: Site, gpus: tuple[Gpu, ...], since: float, stop: Stop, meter: Meter) -> Iterator[Lease]:
    """Errors: NodeFault, Stopped."""
    with site.gpus.again(tuple(gpu.index for gpu in gpus), stop) as same, meter.leasing(len(same), since):
        yield Lease(site.gpus, same, since, meter)
