from __future__ import annotations

from math import inf, nan

import pytest

from service.domain import amounts
from service.search.metric.samples import Interval


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (12345.678, "12346"),
        (1234567.0, "1234567"),
        (0.00012346, "0.0001235"),
        (-512.25, "-512.2"),
        (2e9, "2e+09"),
    ],
)
def test_a_number_has_four_digits_or_those_of_an_integer(value: float, shown: str) -> None:
    assert amounts.number(value) == shown


def test_an_amount_is_a_number_with_its_unit() -> None:
    assert (amounts.amount(512.0, "tok/s"), amounts.amount(0.62)) == ("512 tok/s", "0.62")


def test_a_level_comes_with_its_interval_and_unit() -> None:
    assert amounts.level(Interval(512.0, 498.0, 523.0), "tok/s") == "512 (498 to 523) tok/s"
    assert amounts.level(Interval(512.0, 498.0, 523.0)) == "512 (498 to 523)"


def test_of_what_is_open_or_unknown_nothing_is_said() -> None:
    assert amounts.level(Interval(512.0, -inf, inf), "ms") == "512 ms"
    assert amounts.level(None, "ms") == amounts.level(Interval(nan, 0.0, 1.0), "ms") == ""
    assert amounts.size(Interval(inf, 0.0, inf), relative=True) == "worse"


def test_the_size_of_a_step_is_a_share_or_in_the_unit() -> None:
    assert amounts.size(Interval(0.121, 0.094, 0.148), relative=True, unit="ms") == "12.1 % (9.4 to 14.8 %) worse"
    assert amounts.size(Interval(3.0, 2.5, 3.5), relative=False, unit="ms") == "3 (2.5 to 3.5) ms worse"
