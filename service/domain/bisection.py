"""The things that are kept: bisections, their probes, and the builds that probes wait for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.evidence import Fault, Log, Outcome, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.metric import Measuring, Metric
from service.domain.recipe import Recipe, SandboxKind


class FailureIn(StrEnum):
    """Where the failure shows: in a run of the wheel, or already when it is built."""

    RUN = "run"
    BUILD = "build"


class OtherFailures(StrEnum):
    """What a failure that is not the one looked for means."""

    SKIP = "skip"
    BAD = "bad"


class Origin(StrEnum):
    """How a wheel came about: by the build command, from another one with the same native code, or from an index."""

    BUILT = "built"
    OVERLAY = "overlay"
    PREBUILT = "prebuilt"


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
    `flaky`: a verdict may err either way, so commits are tried again until the answer is sure enough. `control`: must
    pass where the reproduction fails, or that failure does not count. `metric`: the number that decides, instead of a
    failure; `other_metrics` are measured beside it.
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
    failure_in: FailureIn = FailureIn.RUN
    control: Reproduction | None = None
    other_failures: OtherFailures = OtherFailures.SKIP
    metric: Metric | None = None
    other_metrics: tuple[Metric, ...] = ()
    measuring: Measuring = field(default_factory=Measuring)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Builder:
    """What builds and runs find in their sandbox. `image`: by digest, or by id where it has none."""

    image: str | None
    python: str
    machine: str


@dataclass(frozen=True)
class ResolvedFixup:
    """A fix-up with its range looked up: it applies to the ancestors of `bad` that are none of `good`."""

    name: str
    good: str
    bad: str
    cherry_pick: str | None = None
    patch: str | None = None


@dataclass(frozen=True)
class Survey:
    """The question what builders have, asked once for each bisection. `attempt` is the fencing token of its order."""

    attempt: int = 0
    faults: tuple[Fault, ...] = ()
    silent_since: datetime | None = None


@dataclass(frozen=True)
class Setup:
    """What all builds and runs of a bisection share, fixed when it was prepared, so that only the commit differs.

    `as_of`: the time that dependencies are resolved as of, RFC 3339, or `commit`; None is now. `gpu_class`: of the GPUs
    that all runs get; None when they need none.
    """

    as_of: str | None = None
    fixups: tuple[ResolvedFixup, ...] = ()
    survey: Survey = field(default_factory=Survey)
    builder: Builder | None = None
    gpu_class: str | None = None


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
    setup: Setup = field(default_factory=Setup)
    problem: Problem | None = None
    answer: Answer | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class Probe:
    """One commit tried once. `attempt` is the fencing token of its last dispatch; `faults` are of all attempts.

    `silent_since`: when a sweep first found the lease of a running attempt missing. `target`: the one node that shall
    try it, since others failed. `own_day`: with dependencies as of its own commit, since those of the bisection did not
    fit.
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
    target: str | None = None
    own_day: bool = False


@dataclass(frozen=True)
class Build:
    """A wheel by its key, made once for all who ask. `failure` holds the facts of a run that did not build.

    `native_key`: the same for all wheels whose compiled files are the same. `base_key`: the build whose compiled files
    this one takes; without one it is a native build. `ahead`: nobody waits for it yet.
    `used_at`: when somebody last asked for it.
    """

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
    native_key: str | None = None
    base_key: str | None = None
    origin: Origin | None = None
    notes: tuple[str, ...] = ()
    ahead: bool = False
    used_at: datetime | None = None


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
class Gpu:
    """`model`: as the driver names it; `gpu_class`: that name as it stands in queues."""

    index: int
    model: str
    gpu_class: str
    memory_bytes: int


@dataclass(frozen=True)
class Node:
    """`out`: why it was taken out and gets no probes; empty while it is in."""

    name: str
    slots: int
    seen_at: datetime
    state: str
    roles: tuple[str, ...] = ("build", "run")
    facts: dict[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    out: str = ""
