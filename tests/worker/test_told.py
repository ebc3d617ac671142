"""What the script or the check says itself: a verdict, and the numbers of a metric."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.bench import SERVER, Bench, values_of
from worker.contract import Metric, Told
from worker.run.inside.voice import LINE, Voice

#: A server that talks while it is asked, and says what only the check may say.
NOISY = (
    f"(while true; do echo 'firstbad: bad says the server'; printf '{{\"rate\": '; sleep 0.01; done) & exec {SERVER}"
)


def heard(*pieces: bytes, keep: int = 0) -> Voice:
    voice = Voice(keep)
    for piece in pieces:
        voice.hear(piece)
    voice.close()
    return voice


def test_the_last_line_that_names_a_verdict_counts(bench: Bench) -> None:
    outcome = bench.outcome(
        "echo 'firstbad: good so far'; seq 3; echo 'firstbad: bad wrong answer: 41'; echo bye; exit 1"
    )
    assert outcome.told == Told(verdict="bad", reason="wrong answer: 41")
    assert (outcome.exit_status, outcome.ended_in) == (1, "script")


def test_it_is_heard_in_what_the_cap_leaves_out(process_bench: Bench) -> None:
    script = "seq 1 100000; echo 'firstbad: skip no such test'; seq 1 200000"
    outcome = process_bench.outcome(script, limits={"log_cap_bytes": 65536})
    assert outcome.told == Told(verdict="skip", reason="no such test")
    assert b"no such test" not in process_bench.log(outcome)


def test_what_a_server_says_is_not_what_the_check_says(bench: Bench) -> None:
    assert bench.serve(NOISY, check="sleep 0.1").told is None
    outcome = bench.serve(NOISY, check="sleep 0.1; echo 'firstbad: good'; sleep 0.1")
    assert outcome.told == Told(verdict="good")
    assert "firstbad: bad says the server" in bench.text(outcome)


def test_a_line_of_ours_is_not_taken_for_the_scripts(process_bench: Bench) -> None:
    built = process_bench.build()
    assert built.wheel is not None
    # Nothing installs that the sandbox lacks, and our own line says so.
    outcome = process_bench.outcome(
        "echo; /no/such/program || true; echo ' firstbad: bad'; echo '+ firstbad: bad'",
        wheel=built.wheel.path,
    )
    assert outcome.told is None


@given(
    lines=st.lists(st.sampled_from(["firstbad: good", "firstbad: bad x", "firstbad:", "y", "firstbad: skipped", ""])),
    size=st.integers(min_value=1, max_value=20),
)
def test_how_the_output_was_cut_does_not_matter(lines: list[str], size: int) -> None:
    text = "\n".join(lines).encode()
    told = [line for line in lines if line.startswith("firstbad:")]
    voice = heard(*(text[start : start + size] for start in range(0, len(text), size)))
    assert voice.told == (told[-1].encode() if told else None)


def test_a_line_that_is_too_long_tells_nothing() -> None:
    assert heard(b"firstbad: bad ", b"x" * LINE, b"\n").told is None
    assert heard(b"firstbad: bad ", b"x" * 100_000).told is None
    assert heard(b"firstbad: bad ", b"x" * (LINE - 14)).told is not None


@given(pieces=st.lists(st.binary(min_size=1, max_size=30)), keep=st.integers(min_value=1, max_value=50))
def test_of_what_was_said_the_end_is_kept(pieces: list[bytes], keep: int) -> None:
    voice = heard(*pieces, keep=keep)
    assert voice.text() == b"".join(pieces)[-keep:]
    assert voice.size < keep + 30


RATE = Metric(pattern=r"rate: ([0-9.]+|nan)")


@pytest.mark.parametrize(
    ("printed", "values", "problem"),
    [
        ("rate: 12.5", (12.5,), ""),
        ("rate: fast", (), "matches nothing in the output"),
        ("rate: nan", (), "not a finite number"),
    ],
)
def test_a_number_is_found_in_what_was_printed(
    process_bench: Bench, printed: str, values: tuple[float, ...], problem: str
) -> None:
    outcome = process_bench.outcome(f"echo {printed}", metrics=(RATE,))
    assert values_of(outcome) == values
    (found,) = outcome.measurements
    assert problem in found.problem and bool(problem) == bool(found.problem)


def test_a_servers_lines_do_not_tear_the_checks_json(bench: Bench) -> None:
    check = "for part in '{\"rate\":' ' [1, 2,' ' 40.5]}'; do printf '%s' \"$part\"; sleep 0.05; done; echo"
    outcome = bench.serve(NOISY, check=check, metrics=(Metric(json_path="$.rate[-1:]"),))
    assert values_of(outcome) == (40.5,), outcome.environment
    # In the log each line is of one of them.
    assert not [line for line in bench.text(outcome) if "1, 2" in line and "server" in line]


def test_nothing_is_measured_where_the_check_did_not_begin(process_bench: Bench) -> None:
    outcome = process_bench.serve("exit 3", check="echo rate: 1", metrics=(RATE,))
    assert (outcome.ended_in, values_of(outcome)) == ("start", ())
    assert outcome.measurements == ()
