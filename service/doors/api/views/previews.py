"""What a request would come to, and what was read of a text."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from service.doors.api.views.asked import RequestView
from service.doors.api.views.base import Trouble, View
from service.doors.api.views.reports import CommitView


class RangeView(View):
    """`expected_probes`: on average, the ends included."""

    good: tuple[CommitView, ...]
    bad: CommitView
    candidates: int
    expected_probes: float


class SecondsView(View):
    least: float
    most: float


class StockView(View):
    """Of the candidates: how many wheels and native builds differ; how many of these are in stock, null where that is
    not known before a node has said what its image holds; and how many builds are likely at most."""

    different: int
    natives: int
    different_there: int | None
    natives_there: int | None
    likely: int


class ServingView(View):
    """A node, and why it could not run probes of this now; nothing where it could."""

    node: str
    why_not: tuple[str, ...] = ()


class DryRunView(View):
    """What a request would come to; nothing was begun."""

    request: RequestView
    problems: tuple[Trouble, ...] = Field(default=(), description="For which it would be refused.")
    range: RangeView | None = Field(default=None, description="Null where it is refused, or the repository unread.")
    unread: str = Field(default="", description="Why the repository says nothing.")
    wheels: StockView | None = Field(default=None, description="Null where nothing is built, or the range unknown.")
    expected_s: SecondsView | None = Field(
        default=None, description="By what runs and builds of this repository took; null where none are known."
    )
    nodes: tuple[ServingView, ...] = ()
    notes: tuple[str, ...] = Field(default=(), description="What was done to the script, and what refs were taken for.")


class OriginView(View):
    """A piece of the text, in characters (code points) from its beginning."""

    start: int
    end: int
    quoted: str


class FoundView(View):
    """`name`: as in a request, a part of a mapping behind a dot; `why`: in words."""

    name: str = Field(examples=["good", "resources.gpus"])
    value: Any
    certainty: Literal["high", "medium", "low"]
    why: str
    origins: tuple[OriginView, ...]


class CandidateView(View):
    value: str
    origin: OriginView


class MissingView(View):
    """What a request needs and the text does not say for sure, with what it may be."""

    name: str
    question: str
    candidates: tuple[CandidateView, ...] = ()


class DraftView(View):
    """`request`: what was found, as a request file holds it."""

    request: dict[str, Any]
    fields: tuple[FoundView, ...]
    missing: tuple[MissingView, ...] = ()
    notes: tuple[str, ...] = ()
