"""The GPUs of a probe: leased for its runs, looked at before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from worker.contract import Gpu, ProbeOrder
from worker.gpus import Gauge, Gpus, Watch, gauging, watching
from worker.pipeline.runs import Site
from worker.run.job import Job
from worker.run.stop import Stop


@dataclass(frozen=True)
class Watched:
    """What was seen of leased cards during a run."""

    watch: Watch
    gauge: Gauge


@dataclass(frozen=True)
class Lease:
    """`gpus`: the leased ones; none for a probe that wants none."""

    node: Gpus
    gpus: tuple[Gpu, ...] = ()

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
    def watching(self, job: Job) -> Iterator[Watched]:
        """During the run in `job`, whose folder is mounted in its sandbox, or else is its home."""
        marks = (f"/{job.root.parent.name}/{job.root.name}/{part}" for part in ("out", "work"))
        cards, gpus = self.node.cards, self.gpus
        with watching(cards, gpus, tuple(mark.encode() for mark in marks)) as watch, gauging(cards, gpus) as gauge:
            yield Watched(watch, gauge)

    def held(self, watched: Watched) -> dict[str, str]:
        """After a run: who has something in their memory, which is nothing of the run any more, or had it meanwhile."""
        holder = "; ".join(filter(None, (self.node.held_by(self.gpus), watched.watch.held())))
        return {"gpu_held_by": holder} if holder else {}


@contextlib.contextmanager
def leased(site: Site, order: ProbeOrder, stop: Stop) -> Iterator[Lease]:
    """Errors: NodeFault, also when this node does not have such; Stopped."""
    wanted = order.gpus if order.gpus is not None and order.gpus.count > 0 else None
    with site.gpus.lease(wanted, stop) as gpus:
        yield Lease(site.gpus, gpus)


@contextlib.contextmanager
def leased_again(site: Site, gpus: tuple[Gpu, ...], stop: Stop) -> Iterator[Lease]:
    """Errors: NodeFault, Stopped."""
    with site.gpus.again(tuple(gpu.index for gpu in gpus), stop) as same:
        yield Lease(site.gpus, same)
