"""Logs and wheels that leave the store by age and by size, on both databases; what is in use stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from service.adapters.artifacts import Artifacts
from service.application import evict, retention
from service.application.ports import Kept, StoreBusy, Stored
from service.domain.bisection import Message, Probe
from service.domain.errors import NotFound, Removed
from service.domain.evidence import Fault, Log, Outcome
from service.domain.lifecycle import BisectionState, BuildState
from service.domain.results import ProbeReport
from tests.application.conftest import SteppedClock, World
from tests.application.native import begun, state, with_policy
from tests.fakes.workers import result
from tests.s3_server import S3

DAY = 86400.0


@dataclass
class Store:
    """The world's store, with files that are as old as the world's clock says."""

    folder: Path
    clock: SteppedClock

    def put(self, path: str, size: int = 10, age_s: float = 0.0) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
        at = (self.clock.time - timedelta(seconds=age_s)).timestamp()
        os.utime(file, (at, at))
        return file

    def put_logs(self, *probes: Probe, size: int = 10) -> None:
        for probe in probes:
            assert probe.outcome is not None and probe.outcome.log is not None
            self.put(probe.outcome.log.path, size)

    def names(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def store(world: World, tmp_path: Path) -> Store:
    return Store(tmp_path / "store", world.clock)


def found(world: World, store: Store, size: int = 10) -> tuple[Probe, ...]:
    """A bisection that has ended, with all of its logs in the store."""
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND
    probes = tuple(probe for probe in world.flow.probes(id) if probe.outcome is not None)
    store.put_logs(*probes, size=size)
    return probes


def log_path(probe: Probe) -> str:
    assert probe.outcome is not None and probe.outcome.log is not None
    return probe.outcome.log.path


def test_logs_are_removed_by_age_and_their_rows_say_when(
    world: World, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", retention.__name__)
    old = found(world, store)
    kept = with_policy(world, keep_logs_s=30 * DAY)
    kept.flow.sweep()
    assert len(store.names()) == len(old)
    world.clock.pass_(20 * DAY)
    young = found(world, store)
    world.clock.pass_(11 * DAY)
    kept.flow.sweep()
    assert store.names() == {log_path(probe) for probe in young}
    (line,) = caplog.messages
    assert line.startswith(f"removed the logs of {len(old)} runs that ended before 2026-01-02 00:0")
    assert line.endswith("UTC: FIRSTBAD_KEEP_LOGS")
    for probe in old:
        row = world.flow.probe(probe.id)
        assert row.log_removed_at is not None
        assert replace(row, log_removed_at=None) == probe
    assert {probe.log_removed_at for probe in world.flow.probes(young[0].bisection_id)} == {None}


def test_a_removed_log_is_told_as_removed_and_since_when_and_why(world: World, store: Store) -> None:
    (probe, *_) = found(world, store)
    world.clock.pass_(31 * DAY)
    kept = with_policy(world, keep_logs_s=30 * DAY)
    kept.flow.sweep()
    for read in (kept.flow.log, kept.flow.follow):
        with pytest.raises(Removed, match="was removed on 2026-02-01 at 00:00 UTC, by its age: FIRSTBAD_KEEP_LOGS"):
            read(probe.id)
    with pytest.raises(Removed, match="to make room: FIRSTBAD_LOG_BUDGET"):
        world.flow.log(probe.id)


def test_the_logs_of_a_bisection_that_is_not_over_stay(world: World, store: Store) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    for _ in range(3):
        world.workers.run(world.flow, world.truth(13))
    (id,) = (found.id for found in world.flow.bisections())
    store.put_logs(*(probe for probe in world.flow.probes(id) if probe.outcome))
    before = store.names()
    world.clock.pass_(100 * DAY)
    tight = with_policy(world, keep_logs_s=DAY, log_bytes=0)
    tight.flow.sweep()
    assert store.names() == before and before
    world.flow.cancel(id, "me")
    world.clock.pass_(3600)
    tight.flow.sweep()
    assert not store.names()


def test_logs_of_faults_and_controls_go_with_those_of_the_outcome(world: World, store: Store) -> None:
    (probe, *_) = found(world, store)
    paths = [f"logs/{probe.id}.{name}.log.zst" for name in ("1", "2", "2.control")]
    fault, own, control = (Outcome("script", log=Log(path, 5)) for path in paths)
    with world.flow.ports.bisections.transaction() as tx:
        faults = (Fault("lost", "gone", outcome=fault), Fault("disk-full", "full"))
        tx.save_probe(replace(tx.probe(probe.id), outcome=replace(own, control=control), faults=faults))
    for path in paths:
        store.put(path)
    world.clock.pass_(2 * DAY)
    with_policy(world, keep_logs_s=DAY).flow.sweep()
    assert not store.names() & set(paths)


def test_logs_are_looked_at_once_an_hour_whoever_sweeps(world: World, store: Store) -> None:
    kept = with_policy(world, keep_logs_s=DAY)
    kept.flow.sweep()
    probes = found(world, store)
    world.clock.pass_(DAY)
    kept.flow.sweep()
    assert len(store.names()) == 0
    with world.flow.ports.bisections.transaction() as tx:
        tx.save_probe(replace(tx.probe(probes[0].id), log_removed_at=None))
    for _ in range(3):
        kept.flow.sweep()
    assert world.flow.probe(probes[0].id).log_removed_at is None
    world.clock.pass_(3600)
    kept.flow.sweep()
    assert world.flow.probe(probes[0].id).log_removed_at is not None


def test_what_one_look_does_not_take_is_left_to_the_next_sweep(world: World, store: Store) -> None:
    (first, *_) = found(world, store)
    most = retention.BATCH * retention.BATCHES
    with world.flow.ports.bisections.transaction() as tx:
        for number in range(100, 100 + most):
            outcome = replace(first.outcome, log=Log(f"logs/{first.bisection_id}.{number}.1.log.zst", 5))  # type: ignore[type-var]
            tx.add_probe(replace(first, id=f"{first.bisection_id}.{number}", number=number, outcome=outcome))
    world.clock.pass_(2 * DAY)
    kept = with_policy(world, keep_logs_s=DAY)
    kept.flow.sweep()
    left = [probe for probe in world.flow.probes(first.bisection_id) if probe.log_removed_at is None and probe.outcome]
    assert len(world.flow.probes(first.bisection_id)) - len(left) >= most > 0 and left
    kept.flow.sweep()
    assert all(probe.log_removed_at for probe in world.flow.probes(first.bisection_id) if probe.outcome)
    assert not store.names()


def test_the_oldest_logs_go_until_the_others_fit(world: World, store: Store) -> None:
    first = found(world, store, size=100)
    world.clock.pass_(DAY)
    second = found(world, store, size=100)
    room = 100 * len(second) + 250
    with_policy(world, log_bytes=room).flow.sweep()
    assert sum((store.folder / name).stat().st_size for name in store.names()) == room - 50
    assert {log_path(probe) for probe in second} <= store.names()
    removed = [probe.id for probe in first if world.flow.probe(probe.id).log_removed_at is not None]
    assert len(removed) == len(first) - 2
    assert {log_path(probe) for probe in first if probe.id not in removed} <= store.names()


def test_nothing_that_is_known_leaves_for_what_no_row_knows(world: World, store: Store) -> None:
    probes = found(world, store, size=100)
    store.put(f"logs/{probes[0].id}.9.log.zst", size=10_000)
    world.clock.pass_(60)
    with_policy(world, log_bytes=100 * len(probes)).flow.sweep()
    assert {log_path(probe) for probe in probes} <= store.names()
    assert all(world.flow.probe(probe.id).log_removed_at is None for probe in probes)


def test_the_log_of_an_attempt_that_does_not_count_leaves_and_that_of_one_that_does_stays(
    world: World, store: Store
) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    late = world.workers.start(world.flow)
    world.flow.probed(ProbeReport(late.probe, late.attempt, "n1", fault=Fault("lost", "gone")))
    counted = result(late, 1)
    assert counted.outcome is not None and counted.outcome.log is not None
    store.put(counted.outcome.log.path)
    world.flow.probed(counted)
    assert store.names() == set()
    world.workers.run(world.flow, world.truth(13))
    probe = world.flow.probe(late.probe)
    store.put(log_path(probe))
    again = replace(counted, attempt=probe.attempt, outcome=probe.outcome)
    for report in (again, replace(again, attempt=late.attempt)):
        world.flow.probed(report)
    assert store.names() == {log_path(probe)}


def test_what_fits_stays(world: World, store: Store) -> None:
    probes = found(world, store, size=100)
    with_policy(world, log_bytes=100 * len(probes)).flow.sweep()
    assert len(store.names()) == len(probes)


class Away:
    """A store that cannot be reached."""

    def read(self, path: str) -> Iterator[bytes]:
        raise StoreBusy("away")

    def remove(self, path: str) -> None:
        raise StoreBusy("away")

    def stored(self, folder: str) -> Iterator[Stored]:
        raise StoreBusy("away")


def test_what_a_store_that_is_away_cannot_remove_is_removed_once_it_is_back(world: World, store: Store) -> None:
    """As after a death between the transaction and the removal: the outbox has it."""
    found(world, store)
    world.clock.pass_(2 * DAY)
    kept = with_policy(world, keep_logs_s=DAY, log_bytes=0)
    away = replace(kept, flow=replace(kept.flow, ports=replace(kept.flow.ports, artifacts=Away())))
    away.flow.sweep()
    assert store.names()
    world.flow.sweep()
    assert not store.names()


def test_wheels_that_nobody_asks_for_any_more_go_by_age(native: World, tmp_path: Path) -> None:
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    keys = {order.key for order in native.workers.built}
    aged = with_policy(native, keep_wheels_s=60 * DAY)
    native.clock.pass_(59 * DAY)
    second = begun(native, good=(native.shas[12],), bad=native.shas[17]).id
    native.clock.pass_(2 * DAY)
    aged.flow.sweep()
    needed = {probe.build_key for probe in native.flow.probes(second)}
    states = {key: state(native, key) for key in keys}
    assert {key for key, found in states.items() if found is BuildState.EVICTED}
    assert all(states[key] is not BuildState.EVICTED for key in needed & keys)


def test_the_age_of_wheels_counts_from_when_they_were_last_asked_for() -> None:
    now = SteppedClock().time
    ages = {"new": 1.0, "old": 100.0, "needed": 100.0}
    kept = [Kept(key, 1, now - timedelta(seconds=age), key == "needed") for key, age in ages.items()]
    unknown = Kept("unknown", 1, None, False)
    assert [wheel.key for wheel in evict.aged([*kept, unknown], now, 50.0)] == ["old", "unknown"]
    assert evict.aged(kept, now, None) == ()


def test_the_log_of_a_build_goes_and_that_of_its_next_attempt_is_there(native: World, tmp_path: Path) -> None:
    store = Store(tmp_path / "store", native.clock)
    id = begun(native).id
    key = native.workers.builds[0].key
    failed = Outcome("build", exit_status=2, log=Log(f"logs/{key}.1.log.zst", 5))
    native.workers.build(native.flow, failure=failed)
    native.workers.work(native.flow, native.truth(14))
    native.flow.bisection(id)
    store.put(f"logs/{key}.1.log.zst")
    native.clock.pass_(2 * DAY)
    kept = with_policy(native, keep_logs_s=DAY)
    kept.flow.sweep()
    assert f"logs/{key}.1.log.zst" not in store.names()
    with pytest.raises(Removed, match=f"the log of the build {key} was removed"):
        kept.flow.build_log(key)
    begun(native)
    native.workers.build(native.flow)
    with native.flow.ports.bisections.transaction() as tx:
        again = tx.build(key)
    assert again is not None and again.log_removed_at is None and again.attempt == 2


def names_of(world: World, folder: str) -> set[str]:
    files = world.flow.ports.artifacts.stored(folder)
    before = world.clock.time - retention.YOUNG
    return {file.path for file in retention.orphans(world.flow.ports.bisections, files, before)}


def test_files_that_no_row_knows_are_found_unless_they_are_young(world: World, store: Store) -> None:
    probes = found(world, store)
    known = log_path(probes[0])
    for path in ("logs/b99.1.1.log.zst", f"logs/{probes[0].id}.7.log.zst", "logs/key.1.log.zst"):
        store.put(path, age_s=2 * DAY)
    store.put("logs/b98.1.1.log.zst", age_s=0.5 * DAY)
    store.put("logs/readme", age_s=2 * DAY)
    store.put(known, age_s=2 * DAY)
    assert names_of(world, "logs") == {
        "logs/b99.1.1.log.zst",
        f"logs/{probes[0].id}.7.log.zst",
        "logs/key.1.log.zst",
    }


def test_what_may_still_be_written_for_a_live_bisection_is_no_orphan(native: World, tmp_path: Path) -> None:
    store = Store(tmp_path / "store", native.clock)
    id = begun(native).id
    order = native.workers.builds[0]
    lost = [f"wheels/{order.key}/1/p-1.whl", f"logs/{order.key}.1.log.zst", f"logs/{id}.1.1.log.zst"]
    for path in lost:
        store.put(path, age_s=3 * DAY)
    assert names_of(native, "wheels") == names_of(native, "logs") == set()
    native.workers.work(native.flow, native.truth(14))
    with native.flow.ports.bisections.transaction() as tx:
        build = tx.build(order.key)
    assert build is not None and build.wheel_path == lost[0]
    store.put(f"wheels/{order.key}/9/p-1.whl", age_s=3 * DAY)
    store.put("tmp/0123", age_s=3 * DAY)
    assert names_of(native, "wheels") == {f"wheels/{order.key}/9/p-1.whl"}
    assert names_of(native, "tmp") == {"tmp/0123"}
    assert set(lost[1:]) == names_of(native, "logs")


def test_logs_leave_an_object_store_too(world: World, s3: S3) -> None:
    stored = Artifacts(s3.url)
    probes = []
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    for probe in world.flow.probes(id):
        if probe.outcome is not None:
            s3.put(log_path(probe), b"x" * 100)
            probes.append(probe)
    s3.put("logs/b99.1.1.log.zst", b"x" * 100)
    ports = replace(world.flow.ports, artifacts=stored)
    kept = with_policy(replace(world, flow=replace(world.flow, ports=ports)), log_bytes=100)
    assert {file.path for file in stored.stored("logs")} == {*map(log_path, probes), "logs/b99.1.1.log.zst"}
    assert {file.bytes for file in stored.stored("logs")} == {100}
    kept.flow.sweep()
    assert s3.names() == ["firstbad/logs/b99.1.1.log.zst"]
    assert list(stored.stored("wheels")) == []


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert list(Artifacts(str(tmp_path / "none")).stored("logs")) == []
    with pytest.raises(NotFound):
        list(Artifacts(str(tmp_path)).stored("../logs"))


def test_a_link_in_the_store_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b1.1.1.log.zst").write_bytes(b"x")
    (tmp_path / "store" / "logs").mkdir(parents=True)
    (tmp_path / "store" / "logs" / "away").symlink_to(outside)
    (tmp_path / "store" / "logs" / "b1.1.1.log").symlink_to(outside / "b1.1.1.log.zst")
    assert list(Artifacts(str(tmp_path / "store")).stored("logs")) == []


def test_what_was_sent_is_forgotten_after_a_week_and_may_be_posted_again_then(world: World) -> None:
    def posted_again() -> bool:
        with world.flow.ports.bisections.transaction() as tx:
            tx.post(Message("cancel", "once", {}), world.clock.now())
            found = [message.key for message in tx.undelivered()]
            tx.delivered("once", world.clock.now())
        return "once" in found

    assert posted_again()
    world.clock.pass_(6 * DAY)
    world.flow.sweep()
    assert not posted_again()
    world.clock.pass_(DAY + 60)
    world.flow.sweep()
    assert posted_again()
