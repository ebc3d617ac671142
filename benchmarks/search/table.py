"""One row of the printed table, and the printing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Given = TypeVar("Given")


@dataclass(frozen=True)
class Row:
    """`reached` is None where there is no target."""

    work: str
    target: str
    ours: str
    reference: str = ""
    reached: bool | None = None


def show(title: str, rows: Iterable[Row]) -> list[Row]:
    """Prints rows as they come, as a Markdown table."""
    print(f"\n{title}\n\n| work | target | ours | reached | reference, same run |\n|---|---|---|---|---|", flush=True)
    shown = []
    for row in rows:
        word = {None: "", True: "yes", False: "no"}[row.reached]
        print(f"| {row.work} | {row.target} | {row.ours} | {word} | {row.reference} |", flush=True)
        shown.append(row)
    return shown


def show_all(parts: Mapping[str, Callable[[Given], Iterable[Row]]], given: Given, only: Iterable[str] | None) -> None:
    """The parts asked for, or all, and how many targets they miss."""
    begun, missed = time.monotonic(), 0
    for name, rows in parts.items():
        if not only or name in only:
            missed += sum(row.reached is False for row in show(name, rows(given)))
    print(f"\n{missed} targets not reached; {time.monotonic() - begun:.0f} s")
