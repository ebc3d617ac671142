"""Durations as people write them."""

from __future__ import annotations

import re

from service.domain.errors import BadRequest

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def seconds(written: str | float, *, field: str) -> float:
    """`"20m"`, `"1h30m"`, `"90s"`, or a number of seconds. Errors: BadRequest for anything else."""
    value = float(written) if _is_number(written) else _sum_of_parts(str(written))
    if not 0 < value < 30 * 86400:
        raise BadRequest(
            f"{field}: {written!r} is no duration between 0 and 30 days",
            value=str(written),
            field=field,
            advice='write seconds as a number, or like "90s", "20m", "1h30m"',
        )
    return value


def _is_number(written: str | float) -> bool:
    return isinstance(written, (int, float)) or re.fullmatch(r"\d+(\.\d+)?", written) is not None


def _sum_of_parts(text: str) -> float:
    """-1 when the text is not made of parts alone."""
    compact = text.replace(" ", "")
    parts = _PART.findall(compact)
    if "".join(number + unit for number, unit in parts) != compact:
        return -1.0
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def spoken(seconds: float) -> str:
    """For people: "4.2 s", "3 min 20 s", "2 h 5 min"."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
