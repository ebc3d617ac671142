"""What retention asks of the database: a part of the Transaction protocol."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Owner:
    """A probe or a build, and its logs in the store, of all attempts. `live`: a bisection that is not over needs it."""

    kind: str
    id: str
    paths: tuple[str, ...]
    finished_at: datetime | None
    live: bool
    removed: bool


class Aging(Protocol):
    def claim(self, what: str, every_s: float, now: datetime) -> bool:
        """Whether it is to be done now; then nobody else is told so for the next `every_s` seconds."""

    def due_again(self, what: str) -> None:
        """The next who claims it gets it."""

    def old_logs(self, kind: str, before: datetime, after: tuple[datetime, str] | None, most: int) -> tuple[Owner, ...]:
        """Those that ended before that time, hold logs and are not live, by end and id; those behind `after` alone."""

    def owners(self, ids: Collection[str]) -> tuple[Owner, ...]:
        """Probes and builds by their ids and keys, as far as there are such."""

    def wheels(self, keys: Collection[str]) -> dict[str, tuple[str | None, bool]]:
        """Of builds by their keys: the path of the wheel that is kept, and whether one is under way."""

    def logs_removed(self, owners: Collection[Owner], at: datetime) -> None: ...
    def forget_delivered(self, before: datetime, most: int) -> int:
        """Of the messages that were delivered, the first so many are looked at, and those of before that time are kept
        no longer. How many these are."""
