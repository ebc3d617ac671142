"""What a report says about wheels and dependencies."""

from __future__ import annotations

from dataclasses import replace

from service.application.report import Drift, drift_of
from service.domain.bisection import Build
from service.domain.evidence import Outcome, Verdict
from service.domain.lifecycle import BuildState
from tests.adapters.samples import T0, planned

OWN = Build("k", BuildState.BUILT, "r", "s", "b1", T0, wheel_name="my_engine-1.0-py3-none-any.whl")


def run(number: int, verdict: Verdict, **installed: str):
    outcome = Outcome("script", exit_status=0, dependencies=installed)
    return replace(planned("b1", number), verdict=verdict, outcome=outcome)


def test_dependencies_in_other_versions_are_named_but_not_the_wheel_under_test() -> None:
    bad = run(1, Verdict.BAD, torch="2.9", numpy="2.0", added="1", **{"my-engine": "2"})
    good = run(2, Verdict.GOOD, torch="2.8", numpy="2.0", gone="3", **{"my-engine": "1"})
    assert drift_of([bad, good], [OWN]) == (
        Drift("added", "", "1"),
        Drift("gone", "3", ""),
        Drift("torch", "2.8", "2.9"),
    )


def test_runs_that_do_not_say_what_they_had_show_no_difference() -> None:
    assert drift_of([run(1, Verdict.BAD, torch="2.9"), run(2, Verdict.GOOD)]) == ()
    assert drift_of([run(1, Verdict.BAD, torch="2.9")]) == ()
