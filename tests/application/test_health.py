"""Whether a control worker works: one that is busy does, one that is wedged does not, however alive its process is."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from service.adapters.telemetry.pulse import Pulse
from service.application import health
from service.application.health import SILENT_S, STILL_S, SWEEPS
from tests.application.conftest import SteppedClock, World

SWEEP_S, THREADS = 5.0, 8


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def pulse(clock: SteppedClock) -> Pulse:
    return Pulse("control-1", THREADS, SWEEP_S, clock.now)


def trouble(pulse: Pulse, clock: SteppedClock) -> str | None:
    return health.control([pulse.beat()], clock.now())


def test_one_that_sweeps_and_has_nothing_else_to_do_is_well(pulse: Pulse, clock: SteppedClock) -> None:
    for _ in range(100):
        clock.pass_(SWEEP_S)
        with pulse.holding():
            pulse.swept()
        assert trouble(pulse, clock) is None
    assert pulse.beat().swept_at is not None and pulse.beat().busy == 0


def test_one_that_says_nothing_is_down_as_is_a_service_without_any(pulse: Pulse, clock: SteppedClock) -> None:
    beat = pulse.beat()
    clock.pass_(SILENT_S - 1)
    assert health.control([beat], clock.now()) is None
    clock.pass_(2)
    assert health.control([beat], clock.now()) == "the control worker control-1 has said nothing for 31 s"
    assert health.control([], clock.now()) == "no control worker has said anything yet"


def test_one_whose_sweeps_wait_behind_thousands_of_reports_is_well(pulse: Pulse, clock: SteppedClock) -> None:
    """Its ticks run out before it comes to them; what tells is that reports end."""
    for _ in range(100):
        with ExitStack() as in_hand:
            for _ in range(THREADS):
                in_hand.enter_context(pulse.holding())
            clock.pass_(9)
            assert trouble(pulse, clock) is None
    assert pulse.beat().swept_at is None


def test_one_whose_threads_all_clone_for_an_hour_is_well(pulse: Pulse, clock: SteppedClock) -> None:
    with ExitStack() as in_hand:
        for _ in range(THREADS):
            in_hand.enter_context(pulse.holding(slow=True))
        clock.pass_(3600)
        assert trouble(pulse, clock) is None
        assert pulse.beat().preparing == THREADS


def test_one_whose_threads_are_all_stuck_is_down_although_it_beats(pulse: Pulse, clock: SteppedClock) -> None:
    with ExitStack() as in_hand:
        for number in range(THREADS):
            in_hand.enter_context(pulse.holding(slow=number % 2 == 0))
        clock.pass_(STILL_S - 1)
        assert trouble(pulse, clock) is None
        clock.pass_(2)
        said = trouble(pulse, clock)
        assert said is not None and "its oldest message is in hand for 121 s" in said
    assert trouble(pulse, clock) is None


def test_one_that_does_not_read_its_queue_is_down_although_it_beats(pulse: Pulse, clock: SteppedClock) -> None:
    clock.pass_(STILL_S + 1)
    assert "does not read its queue" in str(trouble(pulse, clock))


def test_one_that_sweeps_seldom_is_given_the_time_of_some_sweeps(clock: SteppedClock) -> None:
    seldom = Pulse("control-2", THREADS, 100.0, clock.now)
    clock.pass_(SWEEPS * 100.0 - 1)
    assert trouble(seldom, clock) is None
    clock.pass_(2)
    assert trouble(seldom, clock) is not None


def test_a_report_that_hangs_beside_others_that_do_not_is_no_standstill_but_its_age_is_told(
    pulse: Pulse, clock: SteppedClock
) -> None:
    began = clock.now()
    with pulse.holding():
        for _ in range(100):
            clock.pass_(10)
            with pulse.holding():
                pass
        assert trouble(pulse, clock) is None
        oldest = pulse.beat().oldest_at
        assert oldest is not None and (oldest - began).total_seconds() < 1


def test_one_that_works_is_enough(pulse: Pulse, clock: SteppedClock) -> None:
    dead = replace(pulse.beat(), name="dead")
    clock.pass_(3600)
    with pulse.holding():
        pass
    assert health.control([dead, pulse.beat()], clock.now()) is None


def test_the_service_asks_the_database_for_it(world: World) -> None:
    check = world.flow.checks()["control"]
    pulse = Pulse("control-1", THREADS, SWEEP_S, world.clock.now)
    assert check() == "no control worker has said anything yet"
    world.flow.beat(pulse.beat())
    assert check() is None
    world.clock.pass_(31)
    assert check() == "the control worker control-1 has said nothing for 31 s"
    world.flow.beats_no_more("control-1")
    assert check() == "no control worker has said anything yet"
