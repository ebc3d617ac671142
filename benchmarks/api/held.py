"""Watchers held on bisections that live: what they cost, and how soon they hear of what happens."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, insert, select

from benchmarks.api.filled import Filled
from benchmarks.api.served import Served, run
from benchmarks.search.table import Row
from service.adapters.database.engine import create_engine
from service.adapters.database.rows import EVENTS

#: A second, and seconds after the last one in which it must have come.
RATE, LATEST_S = 50.0, 4.0
AIM_MB = 300.0


@dataclass(frozen=True)
class Held:
    """`lost`: events that a watcher did not get, or got twice; `broken`: streams that failed. `delays`: in seconds."""

    watchers: int
    before_mb: float
    with_mb: float
    begun_s: float
    cpu_s: float
    told: int
    delays: tuple[float, ...]
    lost: int
    broken: int


def measure(
    api: Served, database: str, filled: Filled, folder: Path, watchers: int, seconds: float, tokens: list[str]
) -> Held:
    ids = [filled.live[number % len(filled.live)] for number in range(watchers)]
    plan = folder / "watched"
    plan.write_text(json.dumps({"ids": ids, "tokens": tokens}))
    before_mb, began = api.rss_mb, time.monotonic()
    process = run("watchers", api.url, str(plan))
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    begun_s, engine, cpu_s = time.monotonic() - began, create_engine(database), api.cpu_s()[0]
    try:
        told = _happening(engine, sorted(set(ids)), seconds)
        with_mb, cpu_s = api.rss_mb, api.cpu_s()[0] - cpu_s
        threading.Event().wait(LATEST_S)
        with_mb = max(with_mb, api.rss_mb)
        process.stdin.close()
        seen = json.loads(process.stdout.read())
        process.wait(30)
        lost, delays = _compared(engine, seen, told)
    finally:
        engine.dispose()
        if process.poll() is None:
            process.kill()
    broken = sum(not one["well"] for one in seen)
    return Held(watchers, before_mb, with_mb, begun_s, cpu_s / seconds, len(told), tuple(delays), lost, broken)


def _happening(engine: Engine, ids: list[str], seconds: float) -> dict[int, float]:
    """When each was about to be inserted, by its id."""
    chance, pause, told = random.Random(5), threading.Event(), {}
    due, end = time.monotonic(), time.monotonic() + seconds
    while due < end:
        pause.wait(max(0.0, due - time.monotonic()))
        row = {"bisection_id": chance.choice(ids), "kind": "judged", "data": {"number": len(told), "verdict": "good"}}
        at = time.time()
        with engine.begin() as connection:
            made = connection.execute(insert(EVENTS).values(at=datetime.now(UTC), **row)).inserted_primary_key
        told[int(made[0])] = at
        due += chance.expovariate(RATE)
    return told


def _compared(engine: Engine, seen: list[dict[str, object]], told: dict[int, float]) -> tuple[int, list[float]]:
    """What was lost or came twice, of all events that there are; and the delays of those that were told meanwhile."""
    there: dict[str, list[int]] = {}
    wanted = {str(one["id"]) for one in seen}
    with engine.connect() as connection:
        for id, of in connection.execute(select(EVENTS.c.id, EVENTS.c.bisection_id).order_by(EVENTS.c.id)):
            if of in wanted:
                there.setdefault(of, []).append(id)
    lost, delays = 0, []
    for one in seen:
        arrived: list[tuple[int, float]] = one["arrived"]  # type: ignore[assignment]
        got = [id for id, _ in arrived]
        right = there[str(one["id"])]
        lost += len(set(right) - set(got)) + len(got) - len(set(got))
        delays += [at - told[id] for id, at in arrived if id in told]
    return lost, delays


def rows(held: Held) -> Iterator[Row]:
    p50, p99 = np.percentile(held.delays, [50, 99]) if held.delays else (float("nan"),) * 2
    more = held.with_mb - held.before_mb
    yield Row(
        f"{held.watchers} watchers: memory of the API",
        f"{AIM_MB:.0f} MB",
        f"{held.with_mb:.0f} MB; {held.before_mb:.0f} before them, {1000 * more / held.watchers:.0f} kB each",
        reached=held.with_mb < AIM_MB,
    )
    yield Row("until all streams had begun", "", f"{held.begun_s:.1f} s")
    yield Row(
        f"{held.told} events, {RATE:.0f}/s: insert to arrival",
        "",
        f"p50 {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms, of {len(held.delays)}",
    )
    yield Row("processor time of the API meanwhile", "", f"{100 * held.cpu_s:.0f} % of one")
    yield Row("lost or doubled; streams that broke", "0", f"{held.lost}; {held.broken}")
