"""Arithmetic on sizes."""

from tinyserve.utils import cdiv, round_up


def test_division_rounds_up():
    assert cdiv(9, 4) == 3
    assert round_up(9, 4) == 12
