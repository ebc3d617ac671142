"""The least worsening that counts, as people write it."""

from __future__ import annotations

import math
import re

from service.domain.errors import BadRequest
from service.domain.metric import Better, Threshold

AUTO = "auto"
_WRITTEN = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?) ?(%?)")
_ADVICE = "write auto, a share of the good end's number like 5%, or a number in the metric's unit like 0.5"


def threshold(written: str, better: Better, *, field: str) -> Threshold | None:
    """None for `auto`. Errors: BadRequest."""
    text = written.strip()
    if text.lower() == AUTO:
        return None
    parts = _WRITTEN.fullmatch(text)
    value = float(parts[1]) if parts else math.nan
    if parts is None or not math.isfinite(value):
        raise _refused(f"{written[:80]!r} is no threshold", written, field)
    relative = bool(parts[2])
    if value <= 0:
        raise _refused(f"{written[:80]!r} is not more than nothing, so that any noise would count", written, field)
    if relative and better is Better.HIGHER and value >= 100:
        raise _refused(f"{written[:80]!r} is more than a number can fall that is better when higher", written, field)
    made = value / 100 if relative else value
    if not made:
        raise _refused(f"{written[:80]!r} is too little to be told from nothing", written, field)
    return Threshold(made, relative)


def told(threshold: Threshold | None, unit: str) -> str:
    """For a person."""
    if threshold is None:
        return AUTO
    return f"{threshold.value * 100:.6g} %" if threshold.relative else f"{threshold.value:g} {unit}".strip()


def _refused(what: str, written: str, field: str) -> BadRequest:
    return BadRequest(f"{field}: {what}", value=written, field=field, advice=_ADVICE)
