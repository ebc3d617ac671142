"""Leases of GPUs: nobody else of this node's workers uses a leased card, and it is empty when it is given.

Who asks for cards of one class is served in the order in which he came, so that many cards are not passed by few. Who
waits for certain ones keeps those who come later from these alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from worker import contract
from worker.contract import Gpu, gpu_class
from worker.errors import NodeFault
from worker.gpus.cards import Cards, Use, free, told
from worker.gpus.queue import Line, Ticket
from worker.run.stop import Stop

#: Seconds between two looks at cards that are not free yet.
LOOK_S = 0.2
WAIT_S = 300.0
ADVICE = "End it, or keep such work off this node; FIRSTBAD_GPU_WAIT_S says how long a probe waits for that."

#: Cards of which the memory is not free, and who holds it.
Foreign = list[tuple[Gpu, Use]]


@dataclass(frozen=True)
class Gpus:
    """`folder`: of locks and tickets. `wait_s`: how long to wait for cards that others hold outside firstbad."""

    cards: Cards
    folder: Path
    wait_s: float = WAIT_S

    @property
    def inventory(self) -> tuple[Gpu, ...]:
        return self.cards.inventory

    @property
    def driver(self) -> str:
        return self.cards.driver

    @contextlib.contextmanager
    def lease(self, wanted: contract.Gpus | None, stop: Stop) -> Iterator[tuple[Gpu, ...]]:
        """Cards that nobody else has meanwhile; none for None. Errors: NodeFault, Stopped."""
        if wanted is None:
            yield ()
            return
        fitting = self._fitting(wanted)
        with contextlib.ExitStack() as locks:
            yield self._awaited(fitting, wanted, locks, stop)

    def _fitting(self, wanted: contract.Gpus) -> tuple[Gpu, ...]:
        """Those that may be given. Errors: NodeFault, when they are too few."""
        fitting = tuple(gpu for gpu in self.inventory if gpu_class(gpu.model) == wanted.model)
        missing = set(wanted.indexes) - {gpu.index for gpu in fitting}
        if missing:
            shown = ", ".join(map(str, sorted(missing)))
            there = ", ".join(f"{gpu.index}: {gpu.model}" for gpu in self.inventory) or "none"
            message = f"the GPUs {shown} of the class {wanted.model} are wanted, this node has {there}"
            raise NodeFault("gpus", message, "Cards were taken out or changed places: measure on another node.")
        if len(fitting) < wanted.count:
            message = f"{wanted.count} GPUs of the class {wanted.model} are wanted, this node has {len(fitting)}"
            raise NodeFault("gpus", message, "Ask for fewer, or give it to a node that has so many.")
        return tuple(gpu for gpu in fitting if gpu.index in wanted.indexes) if wanted.indexes else fitting

    @contextlib.contextmanager
    def again(self, indexes: Sequence[int], stop: Stop) -> Iterator[tuple[Gpu, ...]]:
        """The same cards for a run that goes on, whatever lies in their memory. Errors: NodeFault, Stopped."""
        stop.check()
        known, line = {gpu.index: gpu for gpu in self.inventory}, Line(self.folder)
        with contextlib.ExitStack() as locks:
            with line.alone():
                for index in indexes:
                    lock = line.lock(index) if index in known else None
                    if lock is None:
                        message = f"GPU {index} is gone, or was leased again while nobody watched over this run"
                        raise NodeFault("gpu-held", message, "The run is tried again.")
                    locks.enter_context(lock)
            yield tuple(known[index] for index in indexes)

    def held_by(self, gpus: Iterable[Gpu]) -> str:
        """Who has something in the memory of these cards now; empty when nobody has. Errors: NodeFault.

        Meant for leased cards when their run is over: while it goes on, its own processes are among them.
        """
        return told((gpu, use) for gpu in gpus if not free(gpu, use := self.cards.use(gpu)))

    def _awaited(
        self, fitting: tuple[Gpu, ...], wanted: contract.Gpus, locks: contextlib.ExitStack, stop: Stop
    ) -> tuple[Gpu, ...]:
        line = Line(self.folder)
        with line.alone():
            ticket = line.draw(wanted.model, tuple(sorted(set(wanted.indexes))))
        try:
            held_since: float | None = None
            while True:
                stop.check()
                with line.alone():
                    leased, foreign = self._tried(line, ticket, fitting, len(ticket.indexes) or wanted.count, locks)
                if leased:
                    return leased
                now = time.monotonic()
                held_since = (held_since or now) if foreign else None
                if held_since is not None and now - held_since >= self.wait_s:
                    raise NodeFault("gpu-held", told(foreign)[:2000], ADVICE)
                stop.pause(LOOK_S)
        finally:
            with line.alone():
                line.give_back(ticket)

    def _tried(
        self, line: Line, ticket: Ticket, fitting: tuple[Gpu, ...], count: int, locks: contextlib.ExitStack
    ) -> tuple[tuple[Gpu, ...], Foreign]:
        """The cards, when it is our turn and there are enough; else what will not do when all runs of ours are over."""
        ahead = line.ahead(ticket)
        if ahead is None:
            return (), []
        with contextlib.ExitStack() as looking:
            mine = {gpu: lock for gpu in fitting if gpu.index not in ahead and (lock := line.lock(gpu.index))}
            for lock in mine.values():
                looking.enter_context(lock)
            uses = [(gpu, self.cards.use(gpu)) for gpu in mine]
            clear = [gpu for gpu, use in uses if free(gpu, use)]
            chosen = tuple(clear[:count]) if len(clear) >= count else ()
            for gpu in chosen:
                # The lock lasts as long as any copy of the file does.
                locks.callback(os.close, os.dup(mine[gpu].fileno()))
        foreign = [(gpu, use) for gpu, use in uses if gpu not in clear]
        hopeless = len(fitting) - len(foreign) < count
        ticket.let_by(hopeless)
        return chosen, foreign if hopeless else []
