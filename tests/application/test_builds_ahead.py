"""What idle builders make before a probe wants it, and what becomes of that."""

from __future__ import annotations

from dataclasses import replace

from service.application.forecast import Forecast, worth_building
from service.application.keys import Keys
from service.domain.evidence import Fault
from service.domain.lifecycle import BuildState
from tests.application.conftest import World
from tests.application.native import begun, node, probe_of, state, with_policy


def test_idle_builders_work_ahead_at_low_priority_and_are_believed(native: World) -> None:
    node(native, 2, "build")
    id = begun(native).id
    now, ahead = native.workers.builds
    assert (now.ahead, ahead.ahead) == (False, True)
    assert (now.source.sha, ahead.source.sha) == (native.shas[-1], native.shas[0])
    native.workers.build(native.flow)
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    good = native.workers.start(native.flow)
    assert good.source.sha == native.shas[0]
    assert probe_of(native, id, native.shas[0]).build_key == ahead.key


def test_nothing_is_built_ahead_without_a_free_builder(native: World) -> None:
    node(native, 1, "build", "run")
    begun(native)
    native.workers.work(native.flow, native.truth(14))
    assert not any(order.ahead for order in native.workers.built)


def test_no_more_is_built_ahead_than_the_policy_allows(native: World) -> None:
    limited = with_policy(native, ahead=1)
    node(limited, 16, "build")
    begun(limited)
    assert sum(order.ahead for order in limited.workers.builds) == 1
    none = with_policy(native, ahead=0)
    begun(none, good=(native.shas[1],))
    assert sum(order.ahead for order in none.workers.builds) == 1


def test_what_was_begun_ahead_is_hurried_when_a_probe_wants_it(native: World) -> None:
    node(native, 2, "build")
    begun(native)
    now, ahead = native.workers.builds
    assert native.workers.builds[0] is now
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    again = [order for order in native.workers.builds if order.key == ahead.key]
    assert [(order.attempt, order.ahead) for order in again] == [(1, True), (1, False)]


def test_a_wheel_that_is_made_in_no_time_is_made_ahead_only_when_it_is_likely_next() -> None:
    keys = {sha: Keys(sha, "n") for sha in "abc"} | {"x": Keys("x", "m")}
    known = Forecast(natives=frozenset("n"), run_s=60.0, build_s=600.0, overlay_s=2.0, room=9, most=9)
    likely = [("a", 0.5), ("b", 0.25), ("x", 0.1)]
    assert worth_building(likely, keys, known) == ("a", "x")
    assert worth_building(likely, keys, replace(known, overlay_s=70.0)) == ("a", "b", "x")
    assert worth_building(likely, keys, replace(known, coming=frozenset("m"))) == ("a",)
    assert worth_building(likely, keys, replace(known, most=1)) == ("a",)


def test_builds_ahead_that_became_worthless_are_cancelled(native: World) -> None:
    node(native, 8, "build")
    id = begun(native).id
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    ahead = {order.key for order in native.workers.builds if order.ahead}
    native.flow.cancel(id, "me")
    assert ahead
    cancelled = {key for kind, key, _ in native.workers.cancelled if kind == "build"}
    assert ahead <= cancelled
    assert all(state(native, key) is BuildState.CANCELLED for key in ahead)


def test_a_whole_search_with_idle_builders_leaves_none_at_work(native: World) -> None:
    node(native, 4, "build")
    id = begun(native).id
    native.workers.work(native.flow, native.truth(14))
    assert native.flow.bisection(id).answer.shas == (native.shas[14],)
    with native.flow.ports.bisections.transaction() as tx:
        assert tx.builds_ahead(id) == ()


def test_a_build_ahead_that_met_only_faults_is_left_until_a_probe_wants_it(native: World) -> None:
    node(native, 2, "build")
    begun(native)
    bad, ahead = native.workers.builds
    native.workers.builds = [ahead]
    for _ in range(3):
        native.workers.build(native.flow, fault=Fault("disk-full", "full", ""))
        native.wait_for_retry()
        node(native, 2, "build")
    assert state(native, ahead.key) is BuildState.FAULTED
    assert ahead.key not in [order.key for order in native.workers.builds]
    native.workers.builds = [bad]
    native.workers.build(native.flow)
    native.workers.run(native.flow, native.truth(14))
    assert ahead.key in [order.key for order in native.workers.builds]


def test_native_code_that_was_hurried_is_stopped_when_nobody_waits_for_it_any_more(native: World) -> None:
    node(native, 2, "build")
    first = begun(native, bad=native.shas[20]).id
    _, ahead = native.workers.builds
    second = begun(native, bad=native.shas[3]).id
    assert state(native, native.flow.probes(second)[0].build_key) is BuildState.WAITING
    for id in (second, first):
        native.flow.cancel(id, "me")
    assert ("build", ahead.key, ahead.attempt) in native.workers.cancelled
