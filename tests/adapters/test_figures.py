"""What is counted of the whole service, on both databases: the same whenever and however often one looks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

import pytest

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.domain.bisection import Build, Message, Origin, Probe
from service.domain.evidence import Fault, Verdict
from service.domain.figures import WAITS_S, Beat, Figures, Standing
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from tests.adapters import samples
from tests.adapters.samples import T0, later

HOUR = 3600.0


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    yield Database(engine)
    engine.dispose()


def look(database: Database, seconds: float) -> Figures:
    settled = False
    while not settled:
        with database.transaction() as tx:
            settled = tx.settle(later(seconds))
    with database.transaction() as tx:
        return tx.figures(later(seconds))


def counts(figures: Figures, name: str) -> dict[str, int]:
    found = Counter[str]()
    for tally in figures.tallies:
        if tally.name == name:
            found[tally.label] += tally.count
    return dict(found)


def totals(figures: Figures, name: str) -> float:
    return sum(tally.total for tally in figures.tallies if tally.name == name)


def random_probe(dice: random.Random, number: int) -> Probe:
    """One that is over within the hour."""
    planned = dice.uniform(0, HOUR - 400)
    queued, sent, started = (planned + offset for offset in (0, dice.uniform(0, 100), dice.uniform(100, 200)))
    state = dice.choice((ProbeState.JUDGED, ProbeState.JUDGED, ProbeState.FAULTED, ProbeState.CANCELLED))
    faults = tuple(Fault(dice.choice(("lost", "disk")), "m") for _ in range(dice.choice((0, 0, 3))))
    return replace(
        samples.planned("b1", number),
        state=state,
        planned_at=later(planned),
        queued_at=later(queued),
        sent_at=later(sent),
        started_at=later(started),
        finished_at=later(started + dice.uniform(0, 200)),
        verdict=dice.choice(tuple(Verdict)) if state is ProbeState.JUDGED else None,
        faults=faults,
        queue=dice.choice(("cpu", "gpu.h100", "node.n1", "node.n2", "with nvlink on cpu")),
        gpu_leased_s=dice.choice((0.0, 10.0)),
        gpu_used_s=dice.choice((0.0, 7.5)),
    )


def test_what_is_counted_is_the_same_whenever_one_looks_and_in_however_many_steps(database: Database) -> None:
    dice = random.Random(1)
    probes = sorted((random_probe(dice, n) for n in range(300)), key=lambda probe: str(probe.finished_at))
    at, written, before = 0.0, 0, Counter[tuple[str, str, float]]()
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
    while written < len(probes):
        at += dice.choice((1.0, 30.0, 200.0))
        with database.transaction() as tx:
            while written < len(probes) and probes[written].finished_at <= later(at):
                tx.add_probe(probes[written])
                written += 1
        found = look(database, at)
        now = Counter({(t.name, t.label, t.bound): t.count for t in found.tallies})
        assert all(now[key] >= count for key, count in before.items())
        before = now
    assert counts(found, "probes") == Counter(_verdict(probe) for probe in probes)
    assert counts(found, "probe faults") == Counter(fault.kind for probe in probes for fault in probe.faults)
    assert counts(found, "turn waits") == Counter(_queue(probe) for probe in probes)
    assert totals(found, "gpu leased") == sum(probe.gpu_leased_s for probe in probes)
    assert totals(found, "gpu used") == pytest.approx(sum(probe.gpu_used_s for probe in probes))
    runs = [_seconds(p.started_at, p.finished_at) for p in probes if p.state is ProbeState.JUDGED]
    assert totals(found, "runs") == pytest.approx(sum(runs), abs=0.1)
    later_on = look(database, at + HOUR)
    assert [replace(tally, total=0.0) for tally in later_on.tallies] == [
        replace(tally, total=0.0) for tally in found.tallies
    ]


def _verdict(probe: Probe) -> str:
    return str(probe.verdict) if probe.state is ProbeState.JUDGED else str(probe.state)


def _queue(probe: Probe) -> str:
    if probe.queue.startswith("with "):
        return "labelled"
    return "node" if probe.queue.startswith("node.") else probe.queue


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    assert begin is not None and end is not None
    return (end - begin).total_seconds()


def test_a_long_history_is_counted_in_pieces_and_each_of_it_once(database: Database) -> None:
    """None of which keeps others from writing for long. Many of them ended in the same moment."""
    number, at_once = 250, 100
    probes = [samples.planned("b1", n, state=ProbeState.CANCELLED) for n in range(number)]
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        for probe in probes:
            tx.add_probe(replace(probe, finished_at=later(probe.number // 10)))
    steps = 0
    with database.transaction() as tx:
        assert counts(tx.figures(later(HOUR)), "probes") == {"cancelled": number}
    settled = False
    while not settled:
        steps += 1
        with database.transaction() as tx:
            settled = tx.settle(later(HOUR), at_once=at_once)
            assert counts(tx.figures(later(HOUR)), "probes") == {"cancelled": number}
    assert steps == 3


def test_waits_are_counted_from_when_a_probe_was_due_in_the_first_bucket_that_holds_them(database: Database) -> None:
    probe = samples.planned("b1", 1, state=ProbeState.CANCELLED, queued_at=T0, due_at=later(20), finished_at=later(600))
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        tx.add_probe(replace(probe, sent_at=later(35), started_at=later(30)))
    found = look(database, 700)
    bounds = {tally.name: (tally.bound, tally.total) for tally in found.tallies if "waits" in tally.name}
    # The clock of the node was behind: what is less than nothing is nothing.
    assert bounds == {"turn waits": (15.0, pytest.approx(15.0)), "queue waits": (WAITS_S[0], 0.0)}


def build(key: str, state: BuildState, origin: Origin | None, seconds: float) -> Build:
    made = replace(samples.build(key), state=state, origin=origin, seconds=4.0, finished_at=later(seconds))
    return replace(made, faults=())


def test_wheels_are_told_by_how_probes_came_by_them(database: Database) -> None:
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        tx.save_build(build("old", BuildState.BUILT, Origin.BUILT, 5))
        tx.save_build(build("new", BuildState.EVICTED, Origin.OVERLAY, 50))
        tx.save_build(build("bad", BuildState.FAILED, None, 50))
        for number, key in enumerate((None, "old", "new", "bad"), start=10):
            ended = samples.planned("b1", number, state=ProbeState.JUDGED, verdict=Verdict.GOOD, build_key=key)
            tx.add_probe(replace(ended, started_at=later(60), finished_at=later(61)))
    found = look(database, 700)
    assert counts(found, "wheels") == {"none": 1, "reused": 1, "overlay": 1, "failed": 1}
    assert counts(found, "builds") == {"built": 1, "overlay": 1, "failed": 1}
    assert totals(found, "build runs") == pytest.approx(12.0)


def test_what_befalls_a_probe_counts_before_it_is_over_and_only_once_after(database: Database) -> None:
    running = samples.planned("b1", 1, state=ProbeState.RUNNING, faults=(samples.FAULT,), gpu_leased_s=5.0)
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        tx.add_probe(replace(running, sent_at=T0))
    assert counts(look(database, 10), "probe faults") == {"disk full": 1}
    assert counts(look(database, 500), "probe faults") == {"disk full": 1}
    with database.transaction() as tx:
        tx.save_probe(replace(running, state=ProbeState.CANCELLED, finished_at=later(510)))
    for seconds in (511, 2000, 4000):
        assert counts(look(database, seconds), "probe faults") == {"disk full": 1}
        assert totals(look(database, seconds), "gpu leased") == 5.0


def test_what_waits_and_what_is_out_is_told_by_queue(database: Database) -> None:
    with database.transaction() as tx:
        tx.add_bisection(replace(samples.fresh("b1"), paused_at=T0))
        tx.add_bisection(replace(samples.fresh("b2"), state=BisectionState.FOUND))
        tx.add_probe(samples.planned("b1", 1, state=ProbeState.QUEUED))
        tx.add_probe(samples.planned("b1", 2, state=ProbeState.QUEUED, sent_at=T0))
        tx.add_probe(samples.planned("b1", 3, state=ProbeState.RUNNING, queue="node.n7"))
        tx.add_probe(samples.planned("b1", 4, state=ProbeState.QUEUED, queue="with nvlink, rack=7 on gpu.h100"))
        tx.save_build(replace(build("k", BuildState.QUEUED, None, 0), finished_at=None, sent_at=None))
        tx.post(Message("probe", "due", {}), later(10))
        tx.post(Message("probe", "not due", {}), later(1000))
        tx.save_node(samples.NODE)
    found = look(database, 30)
    assert set(found.standings) == {
        Standing("probe", "cpu", "waiting", 1),
        Standing("probe", "cpu", "sent", 1),
        Standing("probe", "node", "running", 1),
        Standing("probe", "labelled", "waiting", 1),
        Standing("build", "build", "waiting", 1),
    }
    assert found.bisections == {BisectionState.QUEUED: 1, BisectionState.FOUND: 1} and found.paused == 1
    assert (found.undelivered, found.oldest_at) == (1, later(10))
    assert [node.name for node in found.nodes] == ["gpu-1"]


def test_beats_are_kept_until_their_worker_ends_or_is_forgotten(database: Database) -> None:
    old = Beat("old", T0, T0, T0, 5.0, 8)
    new = Beat("new", T0 + timedelta(days=2), T0, T0, 5.0, 8, busy=2, preparing=1, oldest_at=T0, swept_at=T0)
    with database.transaction() as tx:
        tx.save_beat(old)
        tx.save_beat(replace(new, at=later(5)))
        assert [beat.name for beat in tx.beats()] == ["new", "old"]
        tx.save_beat(new)
        assert tx.beats() == (new,)
        tx.remove_beat("new")
        assert tx.beats() == ()


def test_no_bucket_is_without_an_end(database: Database) -> None:
    assert WAITS_S[-1] == inf
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        ended = samples.planned("b1", 1, state=ProbeState.CANCELLED, queued_at=T0, sent_at=later(10**6))
        tx.add_probe(replace(ended, finished_at=later(10**6)))
    found = look(database, 2 * 10**6)
    assert [tally.bound for tally in found.tallies if tally.name == "turn waits"] == [inf]
