"""Runs for warm-up before the one that counts."""

from __future__ import annotations

import pytest

from tests.worker.bench import SERVER, Bench, values_of
from worker.contract import Metric, Outcome, Reproduction, Told

#: Says how often it was run, and keeps that in the tree.
COUNT = 'echo x >> runs; echo "rate: $(grep -c x runs)"'
RATE = Metric(pattern=r"^rate: (\d+)$")
MARKS = ["firstbad: warm-up 1 of 2", "firstbad: warm-up 2 of 2", "firstbad: after 2 for warm-up, the run that counts"]


def phases(outcome: Outcome) -> list[str]:
    return [phase.name for phase in outcome.phases if phase.name != "fetch"]


def test_a_script_is_run_before_the_run_that_counts_in_the_same_tree(bench: Bench) -> None:
    outcome = bench.outcome(f"{COUNT}; echo firstbad: good $(cat runs)", metrics=(RATE,), warmup=2)
    assert values_of(outcome) == (3.0,) and outcome.measurements[0].found == 1
    assert outcome.told == Told(verdict="good", reason="x x x")
    assert (phases(outcome), outcome.ended_in, outcome.exit_status) == (["warmup", "script"], "script", 0)
    said = [line for line in bench.text(outcome) if "good" not in line]
    assert said == [MARKS[0], "rate: 1", MARKS[1], "rate: 2", MARKS[2], "rate: 3"]


def test_a_check_is_run_on_the_same_server(bench: Bench) -> None:
    outcome = bench.serve(f"echo I am $$; exec {SERVER}", check=COUNT, metrics=(RATE,), warmup=1)
    assert values_of(outcome) == (2.0,)
    assert phases(outcome) == ["start", "ready", "warmup", "check"]
    assert (outcome.ended_in, outcome.ready, outcome.exit_status) == ("check", True, 0)
    assert len([line for line in bench.text(outcome) if line.startswith("I am ")]) == 1


def test_a_warmup_takes_its_own_time(process_bench: Bench) -> None:
    outcome = process_bench.outcome("test -e warm || { touch warm; sleep 1; }", warmup=1)
    warm, script = (phase for phase in outcome.phases if phase.name in ("warmup", "script"))
    assert warm.seconds >= 1.0 and script.at_s >= warm.at_s + warm.seconds


def test_all_that_a_warmup_prints_stands_before_the_line_that_ends_it(process_bench: Bench) -> None:
    script = "seq 1 40000; printf 'no end'"
    text = process_bench.text(process_bench.outcome(script, warmup=1))
    first, second = text.index("no end"), text.index("firstbad: after 1 for warm-up, the run that counts")
    assert second == first + 1 == 40_002 and len(text) == 2 * 40_001 + 2


@pytest.mark.parametrize("status", [1, 125])
def test_a_warmup_that_fails_ends_the_run_as_the_script_would(bench: Bench, status: int) -> None:
    script = f"{COUNT}; echo firstbad: skip no card; exit {status}"
    outcome = bench.outcome(script, metrics=(RATE,), warmup=2)
    assert (outcome.exit_status, outcome.ended_in, phases(outcome)) == (status, "script", ["warmup"])
    assert outcome.told == Told(verdict="skip", reason="no card")
    assert bench.text(outcome)[-1] == "firstbad: the warm-up failed, and the run ends with it"
    assert values_of(outcome) == ()


def test_what_a_warmup_tells_is_not_told_when_the_run_that_counts_tells_nothing(process_bench: Bench) -> None:
    outcome = process_bench.outcome("test -e warm || echo firstbad: bad cold; touch warm", warmup=1)
    assert (outcome.told, outcome.exit_status) == (None, 0)


def test_a_warmup_without_end_is_a_time_out_of_the_script(process_bench: Bench) -> None:
    outcome = process_bench.outcome("echo firstbad: bad hangs; sleep 60", warmup=1, limits={"timeout_s": 1.5})
    assert (outcome.timed_out, outcome.ended_in, phases(outcome)) == (True, "script", ["warmup"])
    assert outcome.told == Told(verdict="bad", reason="hangs")


def test_a_check_that_fails_in_the_warmup_ends_in_the_check(process_bench: Bench) -> None:
    server = f"(while ! test -e go; do sleep 0.05; done; kill -SEGV $$) & exec {SERVER}"
    connect = "(exec 3<>/dev/tcp/127.0.0.1/$FIRSTBAD_PORT) 2>/dev/null"
    died = process_bench.serve(server, check=f"touch go; while {connect}; do sleep 0.05; done; exit 3", warmup=1)
    assert (died.exit_status, died.ended_in, phases(died)[-1]) == (3, "check", "warmup")
    assert died.environment["server_ended"] == "exit status None, signal 11"


def test_the_control_is_warmed_up_as_the_reproduction_is(process_bench: Bench) -> None:
    control = Reproduction(script=f"{COUNT}; exit 0")
    outcome = process_bench.outcome("test -e cold || { touch cold; exit 0; }; exit 1", control=control, warmup=1)
    assert outcome.exit_status == 1 and phases(outcome) == ["warmup", "script"]
    assert outcome.control is not None and phases(outcome.control) == ["warmup", "script"]
