"""Frozen dataclasses to rows and back. The column types do the converting; here only names are matched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from sqlalchemy import RowMapping, Table

from service.adapters.database import tables
from service.domain.access import Session, Token
from service.domain.bisection import Bisection, Build, Event, Message, Node, Probe
from service.domain.figures import Beat, Tally
from service.domain.webhook import Webhook

T = TypeVar("T")

BISECTIONS = cast(Table, tables.BisectionRow.__table__)
PROBES = cast(Table, tables.ProbeRow.__table__)
BUILDS = cast(Table, tables.BuildRow.__table__)
EVENTS = cast(Table, tables.EventRow.__table__)
OUTBOX = cast(Table, tables.OutboxRow.__table__)
NODES = cast(Table, tables.NodeRow.__table__)
TALLIES = cast(Table, tables.TallyRow.__table__)
COUNTED = cast(Table, tables.CountedRow.__table__)
BEATS = cast(Table, tables.BeatRow.__table__)
TOKENS = cast(Table, tables.TokenRow.__table__)
SESSIONS = cast(Table, tables.SessionRow.__table__)
WEBHOOKS = cast(Table, tables.WebhookRow.__table__)

#: Every field of the dataclass is a column of its table.
KEPT: Mapping[type[Any], Table] = {
    Bisection: BISECTIONS,
    Probe: PROBES,
    Build: BUILDS,
    Event: EVENTS,
    Message: OUTBOX,
    Node: NODES,
    Tally: TALLIES,
    Beat: BEATS,
    Token: TOKENS,
    Session: SESSIONS,
    Webhook: WEBHOOKS,
}


def to_row(thing: Any) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def from_row(kind: type[T], row: RowMapping) -> T:
    return kind(**row)


def changes(old: Any, new: Any) -> dict[str, Any]:
    """The columns in which two rows differ, with the new values: a request of many KiB is not written at each step."""
    before, after = to_row(old), to_row(new)
    return {name: value for name, value in after.items() if value != before[name]}
