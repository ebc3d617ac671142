"""`make bench-logs` fails when an aim is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.logs.__main__ import Measured, missed

FINE = Measured(50e6, 199_999_999, {"flood": [0.1, 1.0], "head": [0.2]})


@pytest.mark.parametrize("quick", [True, False])
def test_what_meets_the_aims_is_no_failure(quick: bool) -> None:
    assert missed(FINE, quick=quick) == []


@pytest.mark.parametrize(
    ("change", "told", "also_quick"),
    [
        ({"memory": 200_000_000}, "200 MB", True),
        ({"bytes_s": 49e6}, "49 MB/s", False),
        ({"ages_s": {"flood": [0.1, 1.01]}}, "flood: a line came after 1.01 s", False),
        ({"ages_s": {"tail": []}}, "tail: no line was seen", False),
    ],
)
def test_each_missed_aim_is_told(change: dict, told: str, also_quick: bool) -> None:
    (said,) = missed(replace(FINE, **change), quick=False)
    assert told in said
    assert bool(missed(replace(FINE, **change), quick=True)) == also_quick
