"""A control worker that is killed while it handles a result, which it has taken from the queue by then."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import psycopg

from service.domain.lifecycle import BisectionState, ProbeState
from tests.end_to_end.service import Service, until
from tests.redis_server import Broker
from tests.repositories import NewCommit, build_repository

#: The bad end, which comes first, waits for a word.
SCRIPT = "test $(cat n) -lt 9 || until test -e go; do sleep 0.1; done\ntest $(cat n) -lt 6"
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%bisections%'"""


def waiting(connection: psycopg.Connection) -> int:
    (count,) = connection.execute(WAITING).fetchone() or (0,)
    return int(count)


def lose_its_result(service: Service, id: str, tree: Path, database_url: str) -> None:
    """Kills the control worker while it waits for the bisection, to record what the run in that tree came to."""
    control = service.part("control")
    with psycopg.connect(database_url) as holder, psycopg.connect(database_url, autocommit=True) as watcher:
        holder.execute("SELECT id FROM bisections WHERE id = %s FOR UPDATE", [id])
        assert waiting(watcher) == 0
        (tree / "go").touch()
        until(lambda: waiting(watcher), "the result is being recorded")
        control.kill()


def test_a_run_whose_result_was_lost_with_the_control_worker_is_recorded_and_not_done_again(
    tmp_path: Path, postgres_url: str, broker: Broker
) -> None:
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(10)])
    request = {"project": "source", "good": "main~9", "bad": "main", "script": SCRIPT}
    service = Service(tmp_path / "home", database_url=postgres_url, redis_url=broker.url).start()
    try:
        id = service.submit({**request, "repo": str(tmp_path / "repository")})
        tree = service.home / "work" / "jobs" / f"{id}.1.1" / "work" / "tree"
        until((tree / "n").exists, "the first probe runs")
        lose_its_result(service, id, tree, postgres_url)
        assert service.ended(id).state is BisectionState.FOUND
        with service.client() as client:
            probes, events = client.probes(id), client.events(id).items
        assert "as nobody recorded it" in (service.home / "logs" / "worker.log").read_text()
        assert {probe.attempt for probe in probes} == {1}
        verdicts = Counter(event.data["probe"] for event in events if event.kind == "verdict")
        assert verdicts == {probe.id: 1 for probe in probes if probe.state is ProbeState.JUDGED}
        assert not [event for event in events if event.kind in ("stale", "fault")]
        until(lambda: not list((service.home / "work" / "outgoing").iterdir()), "no result is kept any more")
    finally:
        service.interrupt()
