"""A number that got worse: where it stands in what a run prints, and how it is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Better(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"


class Aggregate(StrEnum):
    """What is made of several numbers that one run prints."""

    MEDIAN = "median"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    LAST = "last"


@dataclass(frozen=True)
class Column:
    """Of the last CSV table that was printed: the column `name`, in rows whose other columns have these values."""

    name: str
    where: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Threshold:
    """The least worsening that counts: a share of the good end's number (0.05 is 5 %), or in the metric's unit."""

    value: float
    relative: bool = True


@dataclass(frozen=True)
class Metric:
    """Exactly one of `pattern`, `json_path` and `csv` finds the number in the output of the check, or of the script.

    `pattern`: a regular expression whose group is the number; a group named `unit` is its unit, and the number is then
    in the group named `value`. `json_path`, `unit_path`: into the last JSON document that was printed. `unit`: what the
    number is in; empty when nobody said. `reader`: the ready-made one that this came from. `aggregate`: None when one
    run may print one number alone. `threshold`: None for whatever can be told apart.
    """

    better: Better
    pattern: str | None = None
    json_path: str | None = None
    csv: Column | None = None
    name: str = "metric"
    unit: str = ""
    unit_path: str | None = None
    reader: str = ""
    aggregate: Aggregate | None = None
    threshold: Threshold | None = None


@dataclass(frozen=True)
class Measuring:
    """`warmup`: how often the check, or the script, is run before the run that counts. `runs`: of each end at most.
    `recheck`: after so many measured commits an end is measured once more; 0 is never."""

    warmup: int = 0
    runs: int = 30
    recheck: int = 8


@dataclass(frozen=True)
class Measurement:
    """One metric in one run. `value`: None where there is none, and `problem` says why. `unit`: as it was printed,
    else as the metric says. `found`: how many numbers were there."""

    name: str
    value: float | None = None
    unit: str = ""
    found: int = 0
    problem: str = ""
