"""The ready-made readers of well-known tools' numbers, from recipes/known/metrics.yaml."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml
from pydantic import TypeAdapter

from service.domain.readers import Reader


def load() -> tuple[Reader, ...]:
    text = resources.files("recipes").joinpath("known/metrics.yaml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Reader, ...]).validate_python([_reader(each) for each in yaml.safe_load(text)])


def _reader(entry: dict[str, Any]) -> dict[str, Any]:
    """A way that all numbers of a reader share is written once."""
    shared = {key: entry[key] for key in ("better", "unit", "aggregate", "parts") if key in entry}
    own = {key: value for key, value in entry.items() if key not in shared}
    return {**own, "numbers": [{**shared, **number} for number in entry["numbers"]]}
