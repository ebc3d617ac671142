"""The things that are kept: bisections, their probes, and the builds that probes wait for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.evidence import Fault, Log, Outcome, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.recipe import Recipe, SandboxKind


class Purpose(StrEnum):
    """Why a probe was planned."""

    GOOD_END = "good end"
    BAD_END = "bad end"
    SEARCH = "search"


@dataclass(frozen=True)
class Serve:
    """A server under test, ready when `ready_http` answers 200 or `ready_log` is printed within `within_s` seconds."""

    command: str
    ready_http: str | None = None
    ready_log: str | None = None
    within_s: float = 1200.0
    port: int = 8000


@dataclass(frozen=True)
class Reproduction:
    """How to see the failure: `script`, or `serve` and then `check`. `failure`: text that only this failure prints."""

    script: str | None = None
    serve: Serve | None = None
    check: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Request:
    """What a user asked for, complete and checked. `good` and `bad` are as they were written.

    `width`: probes in flight at most. `timeout_s`: of one run. `hang_is_bad`: our time-out is the failure itself.
    `flaky`: a verdict may err either way, so commits are tried again until the answer is sure enough.
    """

    repo: str
    good: tuple[str, ...]
    bad: str
    reproduction: Reproduction
    recipe: Recipe
    sandbox: SandboxKind
    width: int = 1
    first_parent: bool = False
    timeout_s: float = 3600.0
    hang_is_bad: bool = False
    flaky: bool = False


@dataclass(frozen=True)
class Problem:
    """Why a bisection was refused or failed; the fields of a UserError."""

    slug: str
    title: str
    detail: str
    value: str = ""
    field: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Answer:
    """One commit (`found`) or several (`suspects`); `why` says what it stands on, or why it is not one commit."""

    shas: tuple[str, ...]
    why: str
    confidence: float | None = None


@dataclass(frozen=True)
class Bisection:
    id: str
    state: BisectionState
    request: Request
    submitter: str
    created_at: datetime
    updated_at: datetime
    good_shas: tuple[str, ...] = ()
    bad_sha: str | None = None
    candidates: int | None = None
    candidates_left: int | None = None
    expected_probes: float | None = None
    notes: tuple[str, ...] = ()
    problem: Problem | None = None
    answer: Answer | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class Probe:
    """One commit tried once. `attempt` is the fencing token of its last dispatch; `faults` are of all attempts.

    `silent_since`: when a sweep first found the lease of a running attempt missing.
    """

    id: str
    bisection_id: str
    number: int
    sha: str
    trial: int
    purpose: Purpose
    state: ProbeState
    planned_at: datetime
    attempt: int = 0
    build_key: str | None = None
    node: str | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    silent_since: datetime | None = None
    outcome: Outcome | None = None
    faults: tuple[Fault, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""


@dataclass(frozen=True)
class Build:
    """A wheel by its key, made once for all who ask. `failure` holds the facts of a run that did not build."""

    key: str
    state: BuildState
    repo: str
    sha: str
    bisection_id: str
    queued_at: datetime
    attempt: int = 0
    node: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    silent_since: datetime | None = None
    seconds: float | None = None
    wheel_name: str | None = None
    wheel_path: str | None = None
    wheel_sha256: str | None = None
    wheel_bytes: int | None = None
    log: Log | None = None
    failure: Outcome | None = None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Commit:
    """What a person wants to see of a commit."""

    sha: str
    subject: str
    author: str
    committed_at: datetime
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """`id` grows with time within one database; `data` is what the kind says, JSON-ready."""

    id: int
    bisection_id: str
    at: datetime
    kind: str
    data: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    """Something to send once its cause is committed. `key` makes a second delivery harmless."""

    topic: str
    key: str
    payload: dict[str, object]


@dataclass(frozen=True)
class Node:
    name: str
    slots: int
    seen_at: datetime
    state: str
    facts: dict[str, str] = field(default_factory=dict)
