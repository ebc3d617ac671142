"""A seed names a run, and the short form leaves no fault out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.faults import DONE_BY
from tests.chaos.one import BESIDE
from tests.chaos.plan import COMMITS, FAULTS, FIRST_BAD, QUICK, RESTARTS, planned


@given(st.integers(0, 10_000), st.sampled_from((None, *FAULTS)), st.booleans())
def test_a_seed_always_gives_the_same_run_and_one_that_can_end_well(seed: int, only: str | None, quick: bool) -> None:
    plan = planned(seed, only, quick)
    assert plan == planned(seed, only, quick)
    assert 0 <= plan.good < FIRST_BAD <= plan.bad <= COMMITS
    faults = [moment.fault for moment in plan.moments]
    assert max(map(faults.count, faults)) <= 2, "a third fault of one kind would end a probe"
    assert sum(fault in RESTARTS for fault in faults) <= 2
    assert "postgres" not in faults or plan.database == "postgresql"
    assert "engine" not in faults or plan.sandbox == "docker"
    assert "race" not in faults or plan.controls == 2


def test_every_fault_comes_in_the_long_form_and_in_the_short_one_and_somebody_does_it() -> None:
    assert {moment.fault for seed in range(len(FAULTS)) for moment in planned(seed).moments} == set(FAULTS)
    assert {fault for group in QUICK for fault in group} == set(FAULTS) == DONE_BY.keys() | BESIDE.keys()
