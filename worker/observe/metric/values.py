"""What was found for a metric, and the one number that is made of it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: Of what a problem quotes.
SHOWN = 100
#: Of several numbers, how many a problem names.
FEW = 3
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
#: "12.5 ms", "80%": a number, and what it is in.
_WITH_UNIT = re.compile(rf"({_NUMBER.pattern})\s*[A-Za-zµ%/][A-Za-zµ%/0-9]*")

AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "last": lambda values: values[-1],
}


class NothingFound(Exception):
    """Why there is no number, in words."""


class NotThere(NothingFound):
    """It was looked for in vain: lines that look like it may help."""


@dataclass(frozen=True)
class Found:
    """As it was printed: text, or what JSON made of it. `unit`: beside it, if any."""

    value: Any
    unit: str = ""


@dataclass(frozen=True)
class Measurement:
    """`value`: None where there is none, and `problem` says why. `unit`: as it was printed. `found`: how many numbers
    were there."""

    value: float | None = None
    unit: str = ""
    found: int = 0
    problem: str = ""


def made(found: Sequence[Found], aggregate: str | None, narrower: str) -> Measurement:
    """`narrower`: how the user gets fewer of them. Errors: NothingFound."""
    count = len(found)
    if aggregate == "last":
        found = found[-1:]
    units = list(dict.fromkeys(each.unit for each in found))
    if len(units) > 1:
        shown = ", ".join(repr(unit) for unit in units[:FEW])
        raise NothingFound(f"the numbers are in several units ({shown}): {narrower}")
    values = [_finite(each.value) for each in found]
    unlike = list(dict.fromkeys(values))
    if len(unlike) == 1:
        return Measurement(values[0], units[0], count)
    if aggregate is None:
        shown = ", ".join(f"{value:.12g}" for value in unlike[:FEW])
        more = ", …" if len(unlike) > FEW else ""
        advice = f"add `aggregate: median` (or mean, min, max, last), or {narrower}"
        raise NothingFound(f"{len(values)} numbers were found, {len(unlike)} different ones ({shown}{more}): {advice}")
    return Measurement(_made(values, aggregate), units[0], count)


def _made(values: Sequence[float], aggregate: str) -> float:
    try:
        value = AGGREGATES[aggregate](values)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise NothingFound(f"the {aggregate} of {len(values)} numbers is larger than a number can be")
    return value


def _finite(value: Any) -> float:
    number = as_number(value)
    if number is None:
        raise NothingFound(f"{_quoted(value)} is no number: {_advice(value)}")
    if not math.isfinite(number):
        shown = value if isinstance(value, str) else number  # an integer may have more digits than Python writes
        raise NothingFound(f"{_quoted(shown)} is not a finite number: the check must fail, or print nothing, instead")
    return number


def _quoted(value: Any) -> str:
    return repr(str(value)[:SHOWN])


def _advice(value: Any) -> str:
    if isinstance(value, str) and _WITH_UNIT.fullmatch(value.strip()[:SHOWN]):
        return "leave its unit out, or give it a group of its own, as in (?P<value>[0-9.]+) *(?P<unit>[a-z]+)"
    return "the pattern's group, the path or the column must lead to one, as 12, 1,234.5 or 1e-3"


def as_number(value: Any) -> float | None:
    """Also of text, with separators between thousands; of nan and inf what they are."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    text = value.strip()
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    return float(text.replace(",", "").replace("_", "")) if _NUMBER.fullmatch(text) else None
