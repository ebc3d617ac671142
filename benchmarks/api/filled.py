"""A database as it is after thousands of bisections, written in a few statements."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Table, insert

from benchmarks.load.repository import Made
from service.adapters.database.engine import create_engine
from service.adapters.database.rows import BISECTIONS, BUILDS, EVENTS, NODES, PROBES, to_row
from service.application.begun import begun
from service.domain.bisection import Answer, Bisection, Build, Node, Origin, Probe, Purpose, Reproduction, Request
from service.domain.evidence import Frame, Log, Outcome, Phase, Signature, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.recipe import Recipe, SandboxKind

#: Of each bisection.
TRIED, TOLD = 8, 20
#: Of ten bisections one still searches.
LIVE = 10
PROJECTS = ("source", "python", "vllm", "sglang", "torch")
SUBMITTERS = 50
#: Rows of a statement.
AT_ONCE = 5000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_FAILURE = Signature(
    "exception", "ValueError", "capture sizes: must be multiples", (Frame("engine/runner.py", "capture"),), line=182
)


@dataclass(frozen=True)
class Filled:
    """Ids, oldest first. `live`: of those that still search."""

    ids: tuple[str, ...]
    live: tuple[str, ...]


def fill(url: str, made: Made, count: int) -> Filled:
    """As if one had been begun each minute. `made`: the repository of all of them."""
    chance = random.Random(7)
    bisections = [_bisection(number, made, chance) for number in range(count)]
    tried = ((one, number) for one in bisections for number in range(1, TRIED + 1))
    tables: tuple[tuple[Table, Iterator[dict[str, Any]]], ...] = (
        (BISECTIONS, (to_row(one) for one in bisections)),
        (PROBES, (to_row(_probe(one, number, made, chance)) for one, number in tried)),
        (BUILDS, (to_row(_build(one, made)) for one in bisections)),
        (EVENTS, (_event(one, number) for number in range(TOLD) for one in bisections)),
        (NODES, (to_row(_node(number)) for number in range(8))),
    )
    engine = create_engine(url)
    with engine.begin() as connection:
        for table, rows in tables:
            while some := list(islice(rows, AT_ONCE)):
                connection.execute(insert(table).inline(), some)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # As the database does by itself a while after so much was written.
        connection.exec_driver_sql("VACUUM ANALYZE" if engine.dialect.name == "postgresql" else "ANALYZE")
    engine.dispose()
    searching = tuple(one.id for one in bisections if one.ended_at is None)
    return Filled(tuple(one.id for one in bisections), searching)


def _bisection(number: int, made: Made, chance: random.Random) -> Bisection:
    project = chance.choice(PROJECTS)
    began = BEGAN + timedelta(minutes=number)
    script = f"# report {number}\npython -m engine --steps {number % 97} --size {chance.randrange(10**6)}\n"
    request = Request(
        repo=str(made.path),
        good=(made.shas[0],),
        bad=made.shas[-1],
        reproduction=Reproduction(script=script * 8, failure="capture sizes"),
        recipe=Recipe(project, build_command=None if project == "source" else "uv build --wheel", env={"LEVEL": "1"}),
        sandbox=SandboxKind.PROCESS,
    )
    fresh = begun(f"load-{number:06d}", request, f"user-{number % SUBMITTERS}", began)
    ends = {"good_shas": (made.shas[0],), "bad_sha": made.shas[-1], "candidates": len(made.shas) - 1}
    if number % LIVE == 0:
        changed = began + timedelta(minutes=9)
        return replace(fresh, state=BisectionState.SEARCHING, updated_at=changed, candidates_left=4, **ends)  # type: ignore[arg-type]
    ended = began + timedelta(minutes=chance.randrange(10, 3000))
    answer = Answer((chance.choice(made.shas),), "its parent is good", 0.99)
    return replace(
        fresh, state=BisectionState.FOUND, updated_at=ended, ended_at=ended, answer=answer, candidates_left=1, **ends  # type: ignore[arg-type]
    )  # fmt: skip


def _probe(of: Bisection, number: int, made: Made, chance: random.Random) -> Probe:
    at = of.created_at + timedelta(minutes=number)
    running = of.ended_at is None and number == TRIED
    bad = chance.random() < 0.5
    probe = Probe(
        id=f"{of.id}.{number}",
        bisection_id=of.id,
        number=number,
        sha=chance.choice(made.shas),
        trial=1,
        purpose={1: Purpose.BAD_END, 2: Purpose.GOOD_END}.get(number, Purpose.SEARCH),
        state=ProbeState.RUNNING if running else ProbeState.JUDGED,
        planned_at=at,
        attempt=1,
        build_key=f"wheel-{of.id}",
        node=f"node-{number % 8}",
        queued_at=at,
        started_at=at,
        turn=of.submitter,
        asked_at=of.created_at,
        sent_at=at,
    )
    if running:
        return probe
    verdict, reason = (Verdict.BAD, "exit status 1") if bad else (Verdict.GOOD, "exit status 0")
    outcome = _outcome(probe.id, bad)
    return replace(probe, finished_at=at + timedelta(seconds=50), outcome=outcome, verdict=verdict, reason=reason)


def _outcome(id: str, bad: bool) -> Outcome:
    lines = tuple(f"{place:3d} step of {id}: loss 0.{place * 7919 % 10**6:06d}" for place in range(20))
    return Outcome(
        "check",
        exit_status=int(bad),
        phases=(Phase("start", 0.0, 2.0), Phase("check", 2.0, 48.0)),
        log=Log(f"logs/{id}", 40_000, last_lines=lines),
        failure_seen="capture sizes" if bad else None,
        environment={"python": "3.12.4", "cuda": "12.8", "driver": "570.86"},
        dependencies={f"package-{number}": f"1.{number}.0" for number in range(40)},
        signature=_FAILURE if bad else None,
    )


def _build(of: Bisection, made: Made) -> Build:
    at = of.created_at
    return Build(
        key=f"wheel-{of.id}",
        state=BuildState.BUILT,
        repo=str(made.path),
        sha=made.shas[-1],
        bisection_id=of.id,
        queued_at=at,
        attempt=1,
        node="node-0",
        started_at=at,
        finished_at=at + timedelta(seconds=30),
        seconds=30.0,
        wheel_name="engine-1.0-py3-none-any.whl",
        wheel_bytes=10**7,
        origin=Origin.BUILT,
        used_at=at,
    )


def _event(of: Bisection, number: int) -> dict[str, Any]:
    data: dict[str, object] = {"number": number, "sha": of.bad_sha, "verdict": "good", "reason": "exit status 0"}
    return {"bisection_id": of.id, "at": of.created_at + timedelta(seconds=30 * number), "kind": "judged", "data": data}


def _node(number: int) -> Node:
    return Node(f"node-{number}", 8, datetime.now(UTC), "alive", facts={"python": "3.12.4", "machine": "x86_64"})
