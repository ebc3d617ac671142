"""Rotary tables."""

from tinyserve.model_executor.rotary import rotary_table


def test_the_first_frequency_is_one():
    assert rotary_table(64)[0] == 1.0
