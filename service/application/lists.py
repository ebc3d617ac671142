"""Lists, page by page: what is looked for, in which order, and where a page begins. The part of the ports for it.

A page begins after the last thing of the one before, by what never changes of it: what is added meanwhile moves
nothing, and nothing is seen twice or left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from service.domain.bisection import Bisection, Build, Event, Node, Probe
from service.domain.lifecycle import BisectionState, BuildState

T = TypeVar("T")
#: A time, and an id where two have the same.
Place = tuple[datetime, str]


class Order(StrEnum):
    """Those that an index carries. By its end: only what has ended."""

    NEWEST = "-created"
    OLDEST = "created"
    ENDED_LAST = "-ended"
    ENDED_FIRST = "ended"


@dataclass(frozen=True)
class Sought:
    """`states`: any of them, all when empty. `text`: anywhere in what was asked for (`Bisection.words`), whatever its
    case."""

    states: frozenset[BisectionState] = frozenset()
    project: str | None = None
    submitter: str | None = None
    text: str = ""
    order: Order = Order.NEWEST


@dataclass(frozen=True)
class Page(Generic[T]):
    """`more`: there are others after these."""

    items: tuple[T, ...]
    more: bool = False


def place_of(bisection: Bisection, order: Order) -> Place:
    by_end = order in (Order.ENDED_LAST, Order.ENDED_FIRST) and bisection.ended_at is not None
    at = bisection.ended_at if by_end else bisection.created_at
    assert at is not None
    return at, bisection.id


class Lists(Protocol):
    """`after`: the place of the last thing of the page before."""

    def page(self, sought: Sought, *, after: Place | None = None, limit: int = 50) -> Page[Bisection]: ...
    def probe_page(self, bisection_id: str, *, after: int = 0, limit: int = 50) -> Page[Probe]:
        """By number."""

    def build_page(
        self,
        states: Collection[BuildState] = (),
        bisection_id: str | None = None,
        *,
        after: Place | None = None,
        limit: int = 50,
    ) -> Page[Build]:
        """Newest first; of a bisection (as `builds_of`) oldest first."""

    def node_page(self, *, after: str = "", limit: int = 50) -> Page[Node]:
        """By name."""

    def happened(self, *, after: int, limit: int) -> tuple[Event, ...]:
        """Events of all bisections, by id. One with a lower id than the last may still come, until its transaction has
        ended; where ids are left out, that may be why."""

    def last_event(self, bisection_id: str | None = None) -> int:
        """The greatest id of all events, or of a bisection's; 0 where there is none."""
