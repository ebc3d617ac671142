"""Carries a run from its first probe to its answer: asks the step what to do, does it, and keeps what was seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from service.local import probing
from service.local.asked import Judged, Rules, Seen, Want
from service.local.history import Title
from service.local.judging import judged
from service.local.processes import Stop, Stopped
from service.local.replay import replay
from service.local.step import Step, Task, step
from service.local.worktrees import Source, WorkTree
from service.search import Found

Titled = Callable[[Collection[str]], Mapping[str, Title]]


class Teller(Protocol):
    """Shows what goes on; called from one thread."""

    def began(self, number: int, want: Want) -> None: ...
    def ended(self, one: Judged) -> None: ...
    def unneeded(self, number: int, want: Want) -> None: ...
    def stands(self, at: Step, done: int) -> None: ...


@dataclass(frozen=True)
class Flight:
    number: int
    want: Want
    tree: WorkTree
    stop: Stop = field(default_factory=Stop)
    began: float = field(default_factory=monotonic)


@dataclass(frozen=True)
class End:
    step: Step
    judged: tuple[Judged, ...]


class Loop:
    def __init__(
        self, bench: probing.Bench, task: Task, rules: Rules, source: Source, titled: Titled, teller: Teller
    ) -> None:
        self._bench, self._task, self._rules, self._teller = bench, task, rules, teller
        self._titled, self._titles = titled, dict[str, Title]()
        self._seen: list[Seen] = [*bench.folder.seen()]
        self._flying: dict[Future[Seen], Flight] = {}
        self._free = [WorkTree(bench.folder.trees / str(n + 1) / "tree", source) for n in reversed(range(task.width))]
        self._next = max((one.number for one in self._seen), default=0) + 1

    @property
    def judged(self) -> tuple[Judged, ...]:
        return judged(self._seen, self._rules, self._task.terms)

    def run(self) -> End:
        """Errors: processes.NotStarted, worktrees.NoRoom; KeyboardInterrupt, once all that ran has ended."""
        with ThreadPoolExecutor(self._task.width, "probe") as pool:
            try:
                return self._run(pool)
            finally:
                for flight in self._flying.values():
                    flight.stop.press()

    def _run(self, pool: ThreadPoolExecutor) -> End:
        while True:
            at = step(self._task, self.judged, [flight.want for flight in self._flying.values()])
            self._teller.stands(at, len(self._seen))
            if at.over is not None:
                told = self.judged
                self._write_replay(told, at.over.sha if isinstance(at.over, Found) else None)
                return End(at, told)
            for flight in self._flying.values():
                if flight.want.sha in at.worthless:
                    flight.stop.press()
            for want in at.wanted[: len(self._free)]:
                self._start(pool, want)
            done = wait(self._flying, return_when=FIRST_COMPLETED).done
            # What failed comes last, so that no verdict beside it is lost.
            for future in sorted(done, key=lambda each: (each.exception() is not None, self._flying[each].number)):
                self._land(future)

    def _start(self, pool: ThreadPoolExecutor, want: Want) -> None:
        flight = Flight(self._next, want, self._free.pop())
        self._next += 1
        self._teller.began(flight.number, want)
        future = pool.submit(probing.probe, self._bench, flight.number, want, flight.tree, flight.stop)
        self._flying[future] = flight

    def _land(self, future: Future[Seen]) -> None:
        flight = self._flying.pop(future)
        self._free.append(flight.tree)
        try:
            self._seen.append(future.result())
        except Stopped:
            self._teller.unneeded(flight.number, flight.want)
            return
        self._keep()
        self._teller.ended(next(one for one in self.judged if one.seen.number == flight.number))

    def _keep(self) -> None:
        told = {one.seen.number: {"verdict": one.verdict.value, "reason": one.reason} for one in self.judged}
        self._bench.folder.write_seen(self._seen, told)
        self._write_replay(self.judged, None)

    def _write_replay(self, told: Sequence[Judged], found: str | None) -> None:
        unknown = {one.seen.sha for one in told} - self._titles.keys()
        self._titles |= self._titled(unknown) if unknown else {}
        first_parent = self._bench.asked.first_parent
        text = replay(self._task.range_, told, self._titles, self._task.terms, first_parent=first_parent, found=found)
        self._bench.folder.write_replay(text)
