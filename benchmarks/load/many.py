"""Many bisections at once on one repository, with runs that take no time: what the control plane alone can do."""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sqlalchemy import func, select

from benchmarks.load.place import Cpu, Place, place
from benchmarks.load.repository import Made, line
from benchmarks.search.table import Row
from service.adapters.database.engine import create_engine
from service.adapters.database.rows import BISECTIONS, EVENTS, PROBES
from service.application.submission import Submission
from service.domain.access import Caller, Scope
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, ProbeState

COMMITS = 512
#: Loaded modules, caches and connections are no cost of a probe.
WARM_UP = 8
#: A round of fewer bisections is done again until it has about so many.
LEAST = 60
AIM_RATE, AIM_P99_S = 300.0, 0.1


@dataclass(frozen=True)
class Round:
    """`wrong`: what was lost, counted twice or answered wrongly, in words."""

    bisections: int
    probes: int
    took_s: float
    middle_rate: float
    cpu: Cpu
    wrong: tuple[str, ...]
    again: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.probes / self.took_s

    def ms(self, cpu: float) -> float:
        """Of each probe."""
        return 1000 * cpu / self.probes


def measure(kind: str, sizes: list[int], workers: int, *options: str, keep: Path | None = None) -> list[Round]:
    """A round for each size, in turn on the same place. `keep`: a folder for the control workers' profiles."""
    with tempfile.TemporaryDirectory(prefix="firstbad-load-") as root:
        made = line(Path(root) / "source.git", COMMITS)
        with place(Path(root) / "place", kind) as where:
            found = list(_rounds(where, made, sizes, workers, *options))
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                for file in where.measured.glob("*.prof"):
                    shutil.copy(file, keep)
            return found


def _rounds(where: Place, made: Made, sizes: list[int], workers: int, *options: str) -> Iterator[Round]:
    where.wired.flow.ports.history.refresh(str(made.path))
    for number, size in enumerate(sizes):
        with where.control_workers(workers, *options), where.execution_nodes(made):
            _submit_andwait(where, made, WARM_UP, seed=1000 + number)
            before = where.cpu()
            rounds = max(1, round(min(LEAST, max(sizes)) / size))
            begun, took_s, ids = time.time(), 0.0, []
            for turn in range(rounds):
                started = time.monotonic()
                ids += _submit_andwait(where, made, size, seed=100 * number + turn)
                took_s += time.monotonic() - started
            cpu = where.cpu() - before
            sent, _ = where.stop_nodes()
        probes, middle, wrong, again = _check(where, made, ids, begun)
        wrong += _counted(where, sent) if number == 0 else []
        yield Round(size, probes, took_s, middle, cpu, tuple(wrong), again, where.seconds())


def _submit_andwait(where: Place, made: Made, count: int, seed: int) -> list[str]:
    """Ids, each with its right answer in its script."""
    places = random.Random(seed)
    ids = [
        where.wired.flow.submit(
            _submission(made, places.randrange(1, COMMITS)), Caller(f"user-{number % 10}", Scope.ADMIN)
        ).id
        for number in range(count)
    ]
    wait(where, ids)
    return ids


def _submission(made: Made, first_bad: int) -> Submission:
    script = f"# first bad: {first_bad}\npython -m engine --steps 20\n"
    good, bad = made.shas[0], made.shas[-1]
    return Submission(good=(good,), bad=bad, repo=str(made.path), project="source", script=script)


def wait(where: Place, ids: list[str], most_s: float = 600.0) -> None:
    live = select(func.count()).select_from(BISECTIONS).where(BISECTIONS.c.state.in_(sorted(LIVE_BISECTIONS)))
    engine, pause, end = create_engine(where.url), threading.Event(), time.monotonic() + most_s
    try:
        while True:
            with engine.connect() as connection:
                left = connection.execute(live).scalar_one()
            if not left:
                return
            if time.monotonic() > end:
                raise SystemExit(f"{left} of {len(ids)} bisections did not end within {most_s:.0f} s: lost")
            pause.wait(0.1)
    finally:
        engine.dispose()


def _check(where: Place, made: Made, ids: list[str], begun: float) -> tuple[int, float, list[str], int]:
    """Probes recorded, how many a second in the middle of it all, what is wrong, and how many were sent again."""
    wrong: list[str] = []
    ended: list[float] = []
    again = total = 0
    for id in ids:
        bisection, probes = where.wired.flow.bisection(id), where.wired.flow.probes(id)
        _, _, told = bisection.request.reproduction.script.partition("first bad: ")  # type: ignore[union-attr]
        right = (made.shas[int(told.split("\n")[0])],)
        if bisection.state is not BisectionState.FOUND or bisection.answer is None or bisection.answer.shas != right:
            wrong.append(f"{id}: {bisection.state}, {bisection.answer}")
        judged = [probe for probe in probes if probe.state is ProbeState.JUDGED]
        total += len(judged)
        if len({(probe.sha, probe.trial) for probe in judged}) != len(judged):
            wrong.append(f"{id}: a commit was tried twice")
        again += sum(probe.attempt - 1 for probe in probes)
        ended += [probe.finished_at.timestamp() for probe in judged if probe.finished_at is not None]
        verdicts = Counter(event.data["probe"] for event in where.wired.flow.events(id) if event.kind == "verdict")
        if set(verdicts) != {probe.id for probe in judged} or set(verdicts.values()) != {1}:
            wrong.append(f"{id}: verdicts {verdicts}")
    low, high = np.quantile(sorted(ended), [0.1, 0.9])
    return total, 0.8 * total / max(high - low, 1e-9), wrong, again


def _counted(where: Place, sent: int) -> list[str]:
    """Every result that was sent has been recorded once, or noted as stale."""
    engine = create_engine(where.url)
    with engine.connect() as connection:
        judged = connection.execute(
            select(func.count()).select_from(PROBES).where(PROBES.c.state == ProbeState.JUDGED)
        ).scalar_one()
        stale = connection.execute(
            select(func.count()).select_from(EVENTS).where(EVENTS.c.kind == "stale")
        ).scalar_one()
    engine.dispose()
    return [] if sent == judged + stale else [f"{sent} results were sent, {judged} recorded, {stale} stale"]


def rows(found: Round, kind: str, workers: int) -> Iterator[Row]:
    on, cpu = f"{found.bisections} at once, {kind}, control workers: {workers}", found.cpu
    yield Row(
        f"{on}: lost, counted twice, wrong", "0", str(len(found.wrong)), "; ".join(found.wrong[:2]), not found.wrong
    )
    aim = AIM_RATE if kind == "postgresql" else None
    told = f"{found.middle_rate:.0f}/s in the middle 80 %; {found.probes} in {found.took_s:.1f} s"
    rate = f"{found.rate:.0f}/s"
    yield Row("probes recorded", f"{aim:.0f}/s" if aim else "", rate, told, found.rate >= aim if aim else None)
    for name in ("advance", "probed", "started", "prepare", "sweep"):
        if name in found.seconds:
            yield _spent(name, found.seconds[name])
    parts = (
        ("control", cpu.control),
        ("database", cpu.database),
        ("redis", cpu.redis),
        ("the simulated nodes", cpu.nodes),
    )
    told = ", ".join(f"{name} {found.ms(seconds):.2f}" for name, seconds in parts)
    yield Row("control plane, CPU of a probe", "", f"{found.ms(cpu.ours):.2f} ms", told)
    yield Row("orders sent again", "", str(found.again))


def _spent(name: str, seconds: list[float]) -> Row:
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    aim = AIM_P99_S if name == "advance" else None
    told = {
        "advance": "advance: a result recorded, judged, planned on and committed, p50 / p99",
        "probed": "the same, until what is due has been sent, for whomever",
    }.get(name, name)
    return Row(
        told,
        f"p99 {1000 * aim:.0f} ms" if aim else "",
        f"{1000 * p50:.1f} / {1000 * p99:.1f} ms",
        f"{len(seconds)} times, most {1000 * max(seconds):.0f} ms",
        bool(p99 <= aim) if aim else None,
    )


def exponent(found: list[Round]) -> Iterator[Row]:
    for one in found:
        part = ", ".join(
            f"{name} {one.ms(seconds):.2f}"
            for name, seconds in (
                ("control", one.cpu.control),
                ("database", one.cpu.database),
                ("redis", one.cpu.redis),
            )
        )
        told = f"{part}; {one.rate:.0f}/s, {one.probes} probes"
        yield Row(f"CPU of a probe, {one.bisections} at once", "", f"{one.ms(one.cpu.ours):.2f} ms", told, None)
    sizes, costs = [one.bisections for one in found], [one.ms(one.cpu.ours) for one in found]
    if len(sizes) > 1:
        slope = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        yield Row("exponent of the cost by bisections", "0", f"{slope:+.2f}", "", abs(slope) <= 0.1)
