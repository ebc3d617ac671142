"""Rotary position embedding."""

ROPE_BASE = 10000.0


def rotary_table(dim: int) -> list[float]:
    """Inverse frequencies, one for each pair of dimensions."""
    return [ROPE_BASE ** (-index / dim) for index in range(0, dim, 2)]
