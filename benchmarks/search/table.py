"""One row of the printed table, and the printing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
