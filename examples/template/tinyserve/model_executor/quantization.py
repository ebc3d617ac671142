"""Symmetric quantization to a few levels."""

#: Levels on each side of zero.
LEVELS = 2


def quantize(value: float) -> int:
    """The nearest level of a value between -1 and 1."""
    return round(value * LEVELS)


def dequantize(level: int) -> float:
    return level / LEVELS
