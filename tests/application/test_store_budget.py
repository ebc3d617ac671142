"""Wheels that leave the store, by its budget or by mishap, and what happens when they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from service.application import evict
from service.application.ports import Kept, StoreBusy
from service.domain.bisection import Origin
from service.domain.evidence import Fault, Outcome
from service.domain.lifecycle import BisectionState, BuildState
from service.domain.results import BuildReport, ProbeReport, WheelFacts
from tests.application.conftest import World
from tests.application.native import begun, state, with_policy


def test_the_store_is_kept_within_its_budget_but_for_what_live_bisections_need(native: World) -> None:
    first = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(first).state is BisectionState.FOUND
    second = begun(native).id
    native.workers.run(native.flow, native.truth(14))
    tight = with_policy(native, store_bytes=100)
    tight.flow.sweep()
    needed = {probe.build_key for probe in tight.flow.probes(second)}
    keys = {order.key for order in native.workers.built}
    states = {key: state(tight, key) for key in keys}
    assert all(states[key] is BuildState.BUILT for key in needed)
    assert any(found is BuildState.EVICTED for found in states.values())
    tight.workers.work(tight.flow, tight.truth(14))
    assert tight.flow.bisection(second).answer.shas == (native.shas[14],)


def test_an_evicted_wheel_is_gone_from_the_store_and_built_again_when_wanted(native: World, tmp_path: Path) -> None:
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    key, path = native.workers.built[0].key, tmp_path / "store" / f"wheels/{native.workers.built[0].key}/1/p-1.whl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 100)
    empty = with_policy(native, store_bytes=0)
    empty.flow.sweep()
    empty.flow.sweep()
    assert not path.exists()
    assert state(native, key) is BuildState.EVICTED
    built = len(native.workers.built)
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    assert len(native.workers.built) > built
    assert state(native, key) is BuildState.BUILT


def test_the_wheels_used_longest_ago_go_first_and_no_more_than_must() -> None:
    kept = [
        Kept("a", 50, None, False),
        Kept("b", 50, None, True),
        Kept("c", 50, None, False),
        Kept("d", 50, None, False),
    ]
    assert [wheel.key for wheel in evict.surplus(kept, 150)] == ["a"]
    assert [wheel.key for wheel in evict.surplus(kept, 149)] == ["a", "c"]
    assert [wheel.key for wheel in evict.surplus(kept, 10)] == ["a", "c", "d"]
    assert evict.surplus(kept, 200) == ()


class Stuck:
    """A store that lets nothing be removed."""

    def read(self, path: str) -> Iterator[bytes]:
        return iter(())

    def remove(self, path: str) -> None:
        raise StoreBusy("access denied")


def test_a_store_that_lets_nothing_be_removed_holds_no_order_up(native: World) -> None:
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    ports = replace(native.flow.ports, artifacts=Stuck())
    stuck = with_policy(replace(native, flow=replace(native.flow, ports=ports)), store_bytes=0)
    stuck.flow.sweep()
    begun(stuck, good=(native.shas[2],))
    stuck.workers.build(stuck.flow, fault=Fault("disk-full", "full", ""))
    stuck.wait_for_retry()
    assert [order.attempt for order in stuck.workers.builds] == [3]


def test_a_base_that_is_used_is_kept_longer(native: World) -> None:
    begun(native, good=(native.shas[12],), bad=native.shas[17])
    native.workers.work(native.flow, native.truth(14))
    with native.flow.ports.bisections.transaction() as tx:
        base = next(build for build in tx.builds_in([BuildState.BUILT]) if build.base_key is None)
    native.clock.pass_(3600)
    begun(native, good=(native.shas[13],), bad=native.shas[16])
    native.workers.work(native.flow, native.truth(14))
    with native.flow.ports.bisections.transaction() as tx:
        assert tx.build(base.key).used_at > base.used_at


def test_the_wheels_of_attempts_that_do_not_count_are_removed(native: World, tmp_path: Path) -> None:
    begun(native)
    (order,) = native.workers.builds
    stale = WheelFacts("p-1.whl", f"wheels/{order.key}/0/p-1.whl", 100, "0" * 64)
    path = tmp_path / "store" / stale.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    native.flow.built(BuildReport(order.key, 0, "n2", 0.5, wheel=stale, origin=Origin.BUILT))
    assert not path.exists()
    assert state(native, order.key) is BuildState.QUEUED


def test_a_second_probe_that_misses_a_wheel_goes_on_however_the_rebuild_ended(native: World) -> None:
    begun(native)
    native.workers.build(native.flow)
    begun(native, good=(native.shas[2],))
    first, second = native.workers.start(native.flow), native.workers.start(native.flow)
    assert first.wheel == second.wheel
    lost = Fault("missing-wheel", "gone", "")
    native.flow.probed(ProbeReport(first.probe, first.attempt, "n1", fault=lost))
    native.workers.build(native.flow, failure=Outcome("build", exit_status=1))
    native.flow.probed(ProbeReport(second.probe, second.attempt, "n1", fault=lost))
    assert native.flow.probe(second.probe).build_key in [order.key for order in native.workers.builds]


def test_a_probe_that_missed_a_wheel_takes_the_one_that_was_made_since(native: World) -> None:
    begun(native)
    native.workers.build(native.flow)
    begun(native, good=(native.shas[2],))
    first, second = native.workers.start(native.flow), native.workers.start(native.flow)
    lost = Fault("missing-wheel", "gone", "")
    native.flow.probed(ProbeReport(first.probe, first.attempt, "n1", fault=lost))
    native.workers.build(native.flow)
    native.flow.probed(ProbeReport(second.probe, second.attempt, "n1", fault=lost))
    assert native.workers.builds == []
    native.clock.pass_(6)
    native.flow.sweep()
    assert {order.wheel.split("/")[2] for order in native.workers.probes} == {"2"}
