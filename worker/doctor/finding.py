"""What was looked at, what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """`check`: a slug, as in docs/worker.md. `found`: with the value. `advice`: empty where there is nothing to do."""

    check: str
    state: State
    found: str
    advice: str = ""


Findings = Iterator[Finding]


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def warning(check: str, found: str, advice: str) -> Finding:
    return Finding(check, "warning", found, advice)


def problem(check: str, found: str, advice: str) -> Finding:
    return Finding(check, "problem", found, advice)


def status(findings: Iterable[Finding]) -> int:
    """Of the process: warnings are no failure."""
    return int(any(each.state == "problem" for each in findings))


def gib(size: float) -> str:
    return f"{size / 1024**3:.1f} GiB"
