"""What a message may hold at most: what lies is refused, and what is only long or odd loses nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from worker.contract import (
    BuildOrder,
    BuildResult,
    Fault,
    Limits,
    Measurement,
    Message,
    NodeReport,
    Outcome,
    Phase,
    ProbeResult,
    Sandbox,
    Source,
    Started,
    SurveyResult,
    Wheel,
)
from worker.settings import Settings

NODE = NodeReport(node="n1", event="alive", slots=1)
PROBED = ProbeResult(probe="b1.1", attempt=1, node="n1", outcome=Outcome(exit_status=0, ended_in="script"))
BUILT = BuildResult(
    key="k", attempt=1, node="n1", seconds=1.0, wheel=Wheel(name="w.whl", path="wheels/w", bytes=1, sha256="0")
)
STARTED = Started(kind="probe", id="b1.1", attempt=1, node="n1")
SURVEYED = SurveyResult(bisection="b1", attempt=1, node="n1")
ORDER = BuildOrder(
    key="k",
    attempt=1,
    source=Source(repo="r", sha="0"),
    command="true",
    sandbox=Sandbox(kind="process"),
    limits=Limits(timeout_s=1.0),
)


def refused(message: Message, *way: str, value: object) -> bool:
    told: dict[str, Any] = message.model_dump(mode="json")
    place = told
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = value
    with pytest.raises(ValidationError):
        type(message).model_validate(json.loads(json.dumps(told)))
    return True


@pytest.mark.parametrize("node", ["", "n\x00", "n\n1", "\x1b[31mn", "n" * 201])
@pytest.mark.parametrize("message", [NODE, PROBED, BUILT, STARTED, SURVEYED], ids=lambda each: type(each).__name__)
def test_a_node_has_a_short_name_that_can_be_printed(message: Message, node: str) -> None:
    assert refused(message, "node", value=node)


@pytest.mark.parametrize("slots", [-1, -100000, 1025, 10**9, 2**70])
def test_a_node_has_some_slots(slots: int) -> None:
    assert refused(NODE, "slots", value=slots)
    most = Settings.model_fields["slots"].metadata[1].le
    assert NODE.model_copy(update={"slots": most}) == NodeReport(node="n1", event="alive", slots=most)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpus", [{"index": 0, "model": "A", "memory_bytes": -1}]),
        ("gpus", [{"index": 0, "model": "A", "memory_bytes": 2**70}]),
        ("gpus", [{"index": -1, "model": "A", "memory_bytes": 1}]),
        ("gpus", [{"index": 0, "model": "A", "memory_bytes": 1}] * 1025),
        ("roles", ["run"] * 3),
        ("labels", ["a\nb"]),
        ("labels", ["a"] * 10_001),
        ("models", ["m" * 201]),
        ("facts", {str(number): "" for number in range(10_001)}),
        ("adopted", [{"kind": "probe", "id": "", "attempt": 1}]),
        ("adopted", [{"kind": "probe", "id": "b1.1", "attempt": 1}] * 10_001),
    ],
)
def test_a_node_says_no_more_of_itself_than_it_can_have(name: str, value: object) -> None:
    assert refused(NODE, name, value=value)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, 1e300])
def test_seconds_are_a_number_of_them(seconds: float) -> None:
    assert refused(PROBED, "gpu_leased_s", value=seconds)
    assert refused(PROBED, "gpu_used_s", value=seconds)
    assert refused(BUILT, "seconds", value=seconds)
    for name in ("at_s", "seconds"):
        phase = {"name": "script", "at_s": 0.0, "seconds": 0.0, name: seconds}
        assert refused(PROBED, "outcome", "phases", value=[phase])
    assert refused(ORDER, "limits", "timeout_s", value=seconds)


def test_a_clock_that_was_set_back_makes_no_seconds_less_than_none() -> None:
    assert Phase(name="fetch", at_s=-3.5, seconds=-1e8) == Phase(name="fetch", at_s=0.0, seconds=0.0)
    told = PROBED.model_dump() | {"gpu_leased_s": -1e300}
    assert ProbeResult.model_validate(told).gpu_leased_s == 0.0


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("attempt",), -1),
        (("attempt",), 10**9),
        (("outcome", "exit_status"), 2**70),
        (("outcome", "signal"), -(2**70)),
        (("outcome", "log"), {"path": "logs/a", "bytes": -1}),
        (("outcome", "log"), {"path": "logs/a\nb", "bytes": 1}),
        (("outcome", "log"), {"path": "", "bytes": 1}),
        (("outcome", "measurements"), [{"name": "m", "value": math.nan}]),
        (("outcome", "measurements"), [{"name": "m", "value": -math.inf}]),
        (("outcome", "control"), {"ended_in": "script", "control": {"ended_in": "script"}}),
    ],
)
def test_a_run_s_facts_are_such_as_a_run_can_have(way: tuple[str, ...], value: object) -> None:
    assert refused(PROBED, *way, value=value)


def test_a_wheel_is_of_a_size_that_there_is() -> None:
    assert refused(BUILT, "wheel", "bytes", value=-1)
    assert refused(BUILT, "wheel", "bytes", value=2**70)


@given(text=st.text(st.characters(exclude_categories=("Cs",))), many=st.sampled_from((1, 30_000)))
def test_what_is_written_for_a_reader_is_taken_as_far_as_it_can_be_shown(text: str, many: int) -> None:
    fault = Fault(kind=f"{text}\x1b", message=f"{text}\x00" * many, advice=text)
    assert len(fault.kind) <= 200 and fault.kind.isprintable()
    assert len(fault.message) <= 20_000 and not {"\x00", "\x1b"} & set(fault.message)
    assert Fault.model_validate_json(fault.model_dump_json()) == fault


def test_lines_of_a_log_and_numbers_of_a_check_come_as_they_are() -> None:
    text = "\tTraceback:\n  größer € 比 <x>\n"
    assert Fault(kind="order", message=text).message == text
    assert Measurement(name="loss", value=-1.5e-300).value == -1.5e-300
