"""Rounding to levels."""

from tinyserve.model_executor.quantization import LEVELS, quantize


def test_the_ends_are_the_outermost_levels():
    assert quantize(1.0) == LEVELS
    assert quantize(-1.0) == -LEVELS
