"""The control: a second run, of the same wheel, when the reproduction did not end well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.worker.bench import SERVER, Background, Bench, running
from worker.contract import Reproduction, Serve

PASSES = Reproduction(script="echo control passes")


def test_a_failing_reproduction_is_followed_by_its_control(bench: Bench) -> None:
    outcome = bench.outcome("echo broken; exit 3", control=PASSES)
    assert (outcome.exit_status, outcome.log.last_lines) == (3, ("broken",))
    assert outcome.control is not None
    assert (outcome.control.exit_status, outcome.control.log.last_lines) == (0, ("control passes",))
    assert [Path(each.log.path).name.partition(".log")[0].partition(".")[2] for each in (outcome, outcome.control)] == [
        "1",
        "1.control",
    ]
    assert [phase.name for phase in outcome.control.phases] == ["fetch", "script"]
    assert bench.left() == []


def test_a_control_may_fail_as_well(process_bench: Bench) -> None:
    outcome = process_bench.outcome("exit 3", control=Reproduction(script="kill -9 $$"))
    assert outcome.control is not None and outcome.control.signal == 9
    assert outcome.control.control is None


@pytest.mark.parametrize("script", ["true", "exit 125", "echo 'firstbad: skip'; exit 1"])
def test_what_may_not_become_bad_needs_no_control(process_bench: Bench, script: str) -> None:
    assert process_bench.outcome(script, control=PASSES).control is None


@pytest.mark.parametrize("script", ["echo 'firstbad: bad wrong answer'", "kill -6 $$", "sleep 60"])
def test_whatever_may_become_bad_needs_one(process_bench: Bench, script: str) -> None:
    outcome = process_bench.outcome(script, control=PASSES, limits={"timeout_s": 2.0})
    assert outcome.control is not None and outcome.control.exit_status == 0


def test_a_sandbox_that_has_to_be_ended_for_its_time_has_a_control_too(process_bench: Bench) -> None:
    marker = f"600.{os.getpid()}1"
    order = process_bench.order(f"sleep {marker}", control=PASSES, limits={"timeout_s": 1.0})
    probe = Background(process_bench, order)
    eventually(lambda: running(marker))
    # What runs inside cannot end the run itself any more.
    supervisor = next(each for each in running(marker)[0].parents() if "inside.phases" in " ".join(each.cmdline()[:6]))
    supervisor.suspend()
    result = probe.finished()
    assert result is not None and result.fault is None and result.outcome is not None
    assert (result.outcome.timed_out, result.outcome.phases) == (True, ())
    assert result.outcome.control is not None and result.outcome.control.exit_status == 0
    assert probe.stop.reason is None


def test_the_time_limit_holds_for_each_of_them(process_bench: Bench) -> None:
    script = "sleep 2.5; exit {}"
    control = Reproduction(script=script.format(0))
    outcome = process_bench.outcome(script.format(1), control=control, limits={"timeout_s": 4.0})
    assert (outcome.exit_status, outcome.timed_out) == (1, False)
    assert outcome.control is not None
    assert (outcome.control.exit_status, outcome.control.timed_out) == (0, False)


def test_a_server_that_never_gets_ready_has_a_server_as_its_control(process_bench: Bench) -> None:
    control = Reproduction(serve=Serve(command=SERVER, within_s=30.0, ready_http="/"))
    outcome = process_bench.serve("sleep 60", spec={"within_s": 1.0}, control=control)
    assert (outcome.ready, outcome.ended_in) == (False, "ready")
    assert outcome.control is not None and outcome.control.ready


def test_both_have_the_same_wheel_and_neither_sees_the_others_files(bench: Bench) -> None:
    built = bench.build()
    assert built.wheel is not None
    script = "tinypkg; ls; touch mine; exit {}"
    control = Reproduction(script=script.format(0))
    outcome = bench.outcome(script.format(1), control=control, wheel=built.wheel.path, wheel_key="k-7")
    assert outcome.control is not None
    for each in (outcome, outcome.control):
        assert each.log.last_lines[-1] == "tinypkg says hello"
        assert (each.environment["package"], each.environment["wheel_key"]) == ("tinypkg 1.0", "k-7")


def test_each_outcome_has_the_signature_of_its_own_failure(process_bench: Bench) -> None:
    fails = "python3 -c 'raise ValueError(\"{}\")'"
    control = Reproduction(script=fails.format("in the control"))
    outcome = process_bench.outcome(fails.format("in the reproduction"), control=control)
    assert outcome.control is not None
    assert outcome.signature is not None and outcome.control.signature is not None
    assert (outcome.signature.type, outcome.signature.message) == ("ValueError", "in the reproduction")
    assert outcome.control.signature.message == "in the control"


def test_a_build_that_fails_has_a_signature_too(process_bench: Bench) -> None:
    built = process_bench.build("python3 -c 'import no_such_module'")
    assert built.failure is not None and built.failure.signature is not None
    assert built.failure.signature.type == "ModuleNotFoundError"


def test_a_run_that_hangs_has_the_signature_of_its_last_line(process_bench: Bench) -> None:
    outcome = process_bench.outcome("echo capturing graphs; sleep 60", limits={"timeout_s": 1.0})
    assert outcome.signature is not None
    assert (outcome.signature.kind, outcome.signature.message) == ("hang", "capturing graphs")
