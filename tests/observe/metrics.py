"""What tests ask of an output."""

from __future__ import annotations

from dataclasses import dataclass, field

from worker.observe import Measurement, number_of


@dataclass(frozen=True)
class Column:
    name: str
    where: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    pattern: str | None = None
    json_path: str | None = None
    csv: Column | None = None
    unit: str = ""
    unit_path: str | None = None
    aggregate: str | None = None


def by(pattern: str, text: str, **more: str) -> Measurement:
    return number_of(text.encode(), Metric(pattern=pattern, **more))  # type: ignore[arg-type]


def at(path: str, text: str, **more: str) -> Measurement:
    return number_of(text.encode(), Metric(json_path=path, **more))  # type: ignore[arg-type]


def column(name: str, text: str, **where: str) -> Measurement:
    return number_of(text.encode(), Metric(csv=Column(name, where)))


def one(value: float, unit: str = "") -> Measurement:
    return Measurement(value, unit, 1)
