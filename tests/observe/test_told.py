"""A line of the check that says what the commit is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from worker.observe import Told, told
from worker.observe.told import LONGEST
from worker.run.inside.voice import Voice

EXAMPLES = yaml.safe_load(Path(__file__).with_name("told.yaml").read_text())


@pytest.mark.parametrize(("line", "verdict", "reason"), EXAMPLES["told"])
def test_a_line_says_a_verdict_and_why(line: str, verdict: str, reason: str) -> None:
    assert told(line.encode()) == Told(verdict, reason)  # type: ignore[arg-type]


@pytest.mark.parametrize("line", EXAMPLES["meant"])
def test_a_slip_of_the_pen_is_a_skip_that_quotes_it(line: str) -> None:
    found = told(line.encode())
    assert found is not None and found.verdict == "skip"
    assert repr(line.strip()) in found.reason


def test_what_we_say_ourselves_of_a_command_that_is_not_there_is_no_word_of_the_check() -> None:
    voice = Voice()
    voice.hear(b"firstbad: cannot run /bin/nothing: [Errno 2] No such file\n")
    voice.close()
    assert voice.told is None


@pytest.mark.parametrize("line", EXAMPLES["not"])
def test_other_lines_say_nothing(line: str) -> None:
    assert told(line.encode()) is None


@pytest.mark.parametrize("line", [line for line, *_ in EXAMPLES["told"]] + EXAMPLES["meant"] + EXAMPLES["not"])
def test_the_sandbox_s_own_reader_takes_the_same_lines(line: str) -> None:
    voice = Voice()
    voice.hear(b"so far so good\n" + line.encode() + b"\n")
    voice.close()
    assert (voice.told is not None) == (told(line.encode()) is not None)


def test_a_time_stamp_and_colours_are_aside() -> None:
    line = b"2026-11-30T12:00:00.000Z \x1b[31mfirstbad: bad\x1b[0m wrong \x1b[1manswer\x1b[0m\n"
    assert told(line) == Told("bad", "wrong answer")


def test_a_reason_is_bounded_and_a_line_without_end_tells_nothing() -> None:
    assert told(b"firstbad: bad " + b"x" * 1000) == Told("bad", "x" * LONGEST)
    assert told(b"firstbad: bad " + b"x" * 10_000) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read(line: bytes) -> None:
    found = told(b"firstbad: bad " + line)
    assert found is None or found.verdict in ("bad", "skip")
    assert found is None or ("\n" not in found.reason and len(found.reason) <= LONGEST)
