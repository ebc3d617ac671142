"""One bisection over a very long range: until its first probe is dispatched, and what it takes in memory."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.load.many import wait
from benchmarks.load.place import Place, place
from benchmarks.load.repository import BLOCK, Made, merged
from benchmarks.search.table import Row
from service.application.submission import Submission
from service.domain.access import Caller, Scope
from service.domain.bisection import Bisection
from service.domain.lifecycle import ProbeState
from worker.contract import Queue

AIM_S, AIM_BYTES = 5.0, 600 * 1000 * 1000


def measure(commits: int) -> tuple[list[Row], list[str]]:
    """The rows, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="firstbad-load-") as root:
        made = merged(Path(root) / "source.git", commits)
        with place(Path(root) / "place", "postgresql") as where:
            where.wired.flow.ports.history.refresh(str(made.path))
            return _measured(where, made)


def _measured(where: Place, made: Made) -> tuple[list[Row], list[str]]:
    first_bad = len(made.shas) * 2 // 3 // BLOCK * BLOCK
    with where.control_workers(1):
        _submit(where, replace(made, shas=made.shas[-2:]), 1)
        _dispatched_after(where, time.monotonic(), 1)
        begun = time.monotonic()
        asked = _submit(where, made, first_bad)
        first_s = _dispatched_after(where, begun, 2)
        first_bytes = where.peak_bytes()
        with where.execution_nodes(made):
            wait(where, [asked.id])
            took_s, peak = time.monotonic() - begun, where.peak_bytes()
    found, probes = where.wired.flow.bisection(asked.id), where.wired.flow.probes(asked.id)
    right = found.answer is not None and found.answer.shas == (made.shas[first_bad],)
    wrong = [] if right else [f"{asked.id}: {found.state}, {found.answer}"]
    judged = sum(probe.state is ProbeState.JUDGED for probe in probes)
    on = f"a range of {found.candidates:,} commits, one in ten a merge"
    return list(_rows(on, (first_s, took_s), (first_bytes, peak), judged, where.seconds(), wrong)), wrong


def _rows(
    on: str,
    took_s: tuple[float, float],
    peaks: tuple[int, int],
    judged: int,
    seconds: dict[str, list[float]],
    wrong: list[str],
) -> Iterator[Row]:
    first_s, peak = took_s[0], peaks[1]
    yield Row(f"{on}: lost, counted twice, wrong", "0", str(len(wrong)), "; ".join(wrong), not wrong)
    yield Row("submit to first probe dispatched", f"{AIM_S:.0f} s", f"{first_s:.2f} s", "", first_s < AIM_S)
    told = f"{peaks[0] / 1e6:.0f} MB when the first was dispatched"
    yield Row(
        "control worker, peak memory", f"{AIM_BYTES / 1e6:.0f} MB", f"{peak / 1e6:.0f} MB", told, peak < AIM_BYTES
    )
    p50, p99 = np.quantile(seconds["probed"], [0.5, 0.99])
    yield Row("a result, until the next probe is dispatched, p50 / p99", "", f"{p50:.2f} / {p99:.2f} s")
    yield Row("submit to the answer, runs that take no time", "", f"{took_s[1]:.1f} s", f"{judged} probes")


def _submit(where: Place, made: Made, first_bad: int) -> Bisection:
    script = f"# first bad: {first_bad}\npython -m engine --steps 20\n"
    ends = {"good": (made.shas[0],), "bad": made.shas[-1]}
    form = Submission(**ends, repo=str(made.path), project="source", script=script)
    return where.wired.flow.submit(form, Caller("ada", Scope.ADMIN))


def _dispatched_after(where: Place, begun: float, orders: int) -> float:
    """Seconds until so many orders lie in the queue."""
    client, pause = where.broker.client(), threading.Event()
    while client.llen(str(Queue.PROBE)) < orders:
        assert time.monotonic() < begun + 300, "nothing was dispatched within 300 s"
        pause.wait(0.005)
    return time.monotonic() - begun
