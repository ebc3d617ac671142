"""The tables. A column bears the name of the dataclass field that it holds, so rows and dataclasses map one to one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from sqlalchemy import BigInteger, Double, ForeignKey, Index, Integer, MetaData, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from service.adapters.database.types import Json, OneOf, PlainText, UtcDateTime
from service.domain.access import Scope
from service.domain.bisection import Answer, Gpu, Origin, Problem, Purpose, Request, Setup
from service.domain.budget import Budget, Priority
from service.domain.evidence import Fault, Log, Outcome, Override, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState

#: Grows by itself; on SQLite only a plain INTEGER key does.
_Counter = BigInteger().with_variant(Integer(), "sqlite")
_Bytes = Annotated[int, mapped_column(BigInteger)]


#: What waits for its turn to be sent, what was sent and has not ended, and what has.
WAITING = "state = 'queued' AND sent_at IS NULL AND NOT held"
ENDED = "ended_at IS NOT NULL"
OUT = "state IN ('queued', 'running') AND sent_at IS NOT NULL"


def _partial(name: str, where: str, *columns: str) -> Index:
    """Of few rows, whatever the table holds."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {
        str: PlainText,
        float: Double,
        datetime: UtcDateTime,
        BisectionState: OneOf(BisectionState),
        ProbeState: OneOf(ProbeState),
        BuildState: OneOf(BuildState),
        Priority: OneOf(Priority),
        Scope: OneOf(Scope),
        Purpose: OneOf(Purpose),
        Origin: OneOf(Origin),
        Verdict: OneOf(Verdict),
        Request: Json(Request),
        Problem: Json(Problem),
        Setup: Json(Setup),
        Answer: Json(Answer),
        Budget: Json(Budget),
        tuple[Override, ...]: Json(tuple[Override, ...]),
        Outcome: Json(Outcome),
        Log: Json(Log),
        tuple[Fault, ...]: Json(tuple[Fault, ...]),
        tuple[Gpu, ...]: Json(tuple[Gpu, ...]),
        tuple[str, ...]: Json(tuple[str, ...]),
        dict[str, str]: Json(dict[str, str]),
        dict[str, object]: Json(dict[str, object]),
    }


class BisectionRow(Base):
    __tablename__ = "bisections"
    __table_args__ = (
        Index(None, "state", "created_at"),
        Index(None, "created_at", "id"),
        Index(None, "project", "created_at"),
        _partial("ix_bisections_ended", ENDED, "ended_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[BisectionState]
    request: Mapped[Request]
    submitter: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    good_shas: Mapped[tuple[str, ...]]
    bad_sha: Mapped[str | None]
    candidates: Mapped[int | None]
    candidates_left: Mapped[int | None]
    expected_probes: Mapped[float | None]
    notes: Mapped[tuple[str, ...]]
    problem: Mapped[Problem | None]
    answer: Mapped[Answer | None]
    ended_at: Mapped[datetime | None]
    setup: Mapped[Setup]
    priority: Mapped[Priority]
    paused_at: Mapped[datetime | None]
    paused_s: Mapped[float]
    budget: Mapped[Budget]
    overrides: Mapped[tuple[Override, ...]]
    clone_of: Mapped[str | None]
    project: Mapped[str]
    words: Mapped[str]


class ProbeRow(Base):
    __tablename__ = "probes"
    __table_args__ = (
        UniqueConstraint("bisection_id", "number"),
        Index(None, "state"),
        Index(None, "build_key"),
        Index(None, "finished_at"),
        _partial("ix_probes_waiting", WAITING, "queue", "turn", "asked_at", "number"),
        _partial("ix_probes_out", OUT, "queue", "turn"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    bisection_id: Mapped[str] = mapped_column(ForeignKey("bisections.id"))
    number: Mapped[int]
    sha: Mapped[str]
    trial: Mapped[int]
    purpose: Mapped[Purpose]
    state: Mapped[ProbeState]
    planned_at: Mapped[datetime]
    attempt: Mapped[int]
    build_key: Mapped[str | None]
    node: Mapped[str | None]
    queued_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    silent_since: Mapped[datetime | None]
    outcome: Mapped[Outcome | None]
    faults: Mapped[tuple[Fault, ...]]
    verdict: Mapped[Verdict | None]
    reason: Mapped[str]
    target: Mapped[str | None]
    own_day: Mapped[bool]
    queue: Mapped[str]
    turn: Mapped[str]
    asked_at: Mapped[datetime | None]
    held: Mapped[bool]
    due_at: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    leased_at: Mapped[datetime | None]
    gpu_leased_s: Mapped[float]
    gpu_used_s: Mapped[float]
    log_removed_at: Mapped[datetime | None]


class BuildRow(Base):
    """`bisection_id` is the first that asked; others wait for the same row."""

    __tablename__ = "builds"
    __table_args__ = (
        Index(None, "state"),
        Index(None, "native_key"),
        Index(None, "repo"),
        Index(None, "finished_at"),
        Index(None, "queued_at", "key"),
        _partial("ix_builds_waiting", WAITING, "turn", "asked_at", "queued_at"),
        _partial("ix_builds_out", OUT, "turn"),
    )

    key: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[BuildState]
    repo: Mapped[str]
    sha: Mapped[str]
    bisection_id: Mapped[str] = mapped_column(ForeignKey("bisections.id"))
    queued_at: Mapped[datetime]
    attempt: Mapped[int]
    node: Mapped[str | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    silent_since: Mapped[datetime | None]
    seconds: Mapped[float | None]
    wheel_name: Mapped[str | None]
    wheel_path: Mapped[str | None]
    wheel_sha256: Mapped[str | None]
    wheel_bytes: Mapped[_Bytes | None]
    log: Mapped[Log | None]
    failure: Mapped[Outcome | None]
    faults: Mapped[tuple[Fault, ...]]
    native_key: Mapped[str | None]
    base_key: Mapped[str | None]
    origin: Mapped[Origin | None]
    notes: Mapped[tuple[str, ...]]
    ahead: Mapped[bool]
    used_at: Mapped[datetime | None]
    turn: Mapped[str]
    asked_at: Mapped[datetime | None]
    held: Mapped[bool]
    due_at: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    log_removed_at: Mapped[datetime | None]


class EventRow(Base):
    __tablename__ = "events"
    __table_args__ = (Index(None, "bisection_id", "id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(_Counter, primary_key=True)
    bisection_id: Mapped[str] = mapped_column(ForeignKey("bisections.id"))
    at: Mapped[datetime]
    kind: Mapped[str]
    data: Mapped[dict[str, object]]


class OutboxRow(Base):
    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("key"),
        Index(
            "ix_outbox_undelivered",
            "id",
            sqlite_where=text("delivered_at IS NULL"),
            postgresql_where=text("delivered_at IS NULL"),
        ),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(_Counter, primary_key=True)
    topic: Mapped[str]
    key: Mapped[str]
    payload: Mapped[dict[str, object]]
    posted_at: Mapped[datetime]
    delivered_at: Mapped[datetime | None]


class NodeRow(Base):
    __tablename__ = "nodes"

    name: Mapped[str] = mapped_column(primary_key=True)
    slots: Mapped[int]
    seen_at: Mapped[datetime]
    state: Mapped[str]
    facts: Mapped[dict[str, str]]
    roles: Mapped[tuple[str, ...]]
    gpus: Mapped[tuple[Gpu, ...]]
    out: Mapped[str]
    labels: Mapped[tuple[str, ...]]
    models: Mapped[tuple[str, ...]]


class TallyRow(Base):
    """What was counted up to the time in `counted`."""

    __tablename__ = "tallies"

    name: Mapped[str] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(primary_key=True)
    bound: Mapped[float] = mapped_column(primary_key=True)
    count: Mapped[_Bytes]
    total: Mapped[float]


class CountedRow(Base):
    """By name, what is done again and again, and up to when it was. "all": what ended by then is in the tallies."""

    __tablename__ = "counted"

    name: Mapped[str] = mapped_column(primary_key=True)
    until: Mapped[datetime]


class BeatRow(Base):
    __tablename__ = "beats"

    name: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    began_at: Mapped[datetime]
    moved_at: Mapped[datetime]
    sweep_s: Mapped[float]
    threads: Mapped[int]
    busy: Mapped[int]
    preparing: Mapped[int]
    oldest_at: Mapped[datetime | None]
    swept_at: Mapped[datetime | None]


class TokenRow(Base):
    __tablename__ = "tokens"
    __table_args__ = (UniqueConstraint("hash"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    prefix: Mapped[str]
    hash: Mapped[str]
    scope: Mapped[Scope]
    created_at: Mapped[datetime]
    created_by: Mapped[str]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]


class SessionRow(Base):
    """`hash` of the text in the browser's cookie."""

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "expires_at"),)

    hash: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    scope: Mapped[Scope]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class WebhookRow(Base):
    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(primary_key=True)
    url: Mapped[str]
    secret: Mapped[str]
    created_at: Mapped[datetime]
    created_by: Mapped[str]
    events: Mapped[tuple[str, ...]]
    project: Mapped[str | None]
    submitter: Mapped[str | None]
    off: Mapped[str]
    failing_since: Mapped[datetime | None]
    last_error: Mapped[str]
    tried_at: Mapped[datetime | None]
    delivered_at: Mapped[datetime | None]
