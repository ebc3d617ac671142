"""Arithmetic on sizes."""


def cdiv(value: int, divisor: int) -> int:
    """Divides and rounds up."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    return cdiv(value, multiple) * multiple
