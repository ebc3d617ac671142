"""Lines that rules must see, or must not, by rule: tests/observe/signs.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

PROJECT = ("vllm",)


@cache
def examples() -> dict[str, dict[str, list[str]]]:
    given: dict[str, dict[str, list[str]]] = yaml.safe_load(Path(__file__).with_name("signs.yaml").read_text())
    return given


def each(kind: str) -> list[tuple[str, str]]:
    """Pairs of a rule and a log, of the kind "seen" or "missed"."""
    return [(rule, log) for rule, logs in examples().items() for log in logs[kind]]
