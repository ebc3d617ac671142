"""The things that are kept: bisections, their probes, and the builds that probes wait for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.budget import Budget, Priority
from service.domain.evidence import Fault, Log, Outcome, Override, Verdict
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
    ASKED = "asked for"


#: Of the probes that a bisection plans to see its ends.
OF_ENDS = (Purpose.GOOD_END, Purpose.BAD_END)


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
    failure; `other_metrics` are measured beside it. `priority`, `budget`: at its beginning.
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
    priority: Priority = Priority.NORMAL
    budget: Budget = field(default_factory=Budget)
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
    """`paused_at`: since when nothing new is begun for it; None while it is not paused. `paused_s`: seconds of all
    pauses that are over. `budget`: as it is now. `overrides`: in the order in which they were said, of a commit the
    last counts. `clone_of`: the id of the one whose request this one's was made from. `project`: the name of its
    recipe; `words`: what a text is looked for in, in lower case; both as lists of bisections are filtered."""

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
    priority: Priority = Priority.NORMAL
    paused_at: datetime | None = None
    paused_s: float = 0.0
    budget: Budget = field(default_factory=Budget)
    overrides: tuple[Override, ...] = ()
    clone_of: str | None = None
    project: str = ""
    words: str = ""


@dataclass(frozen=True)
class Probe:
    """One commit tried once. `attempt` is the fencing token of its last dispatch; `faults` are of all attempts.

    `silent_since`: when a sweep first found the lease of a running attempt missing. `target`: the one node that shall
    try it, since others failed. `own_day`: with dependencies as of its own commit, since those of the bisection did not
    fit. `queue`: of the nodes that can serve it, as application/queues.py names it. `turn`: its place in line, as
    application/turns.py makes it. `asked_at`: when its bisection was begun. `held`: that one is paused. `due_at`: not
    sent before; `sent_at`: when this attempt was, None while it waits for its turn. `leased_at`: since when it holds
    its GPUs, None while it waits for them or wants none. `gpu_leased_s`, `gpu_used_s`: cards times seconds
    that all its attempts held, and in which their runs were under way. `log_removed_at`: when retention took its log.
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
    queue: str = "cpu"
    turn: str = ""
    asked_at: datetime | None = None
    held: bool = False
    due_at: datetime | None = None
    sent_at: datetime | None = None
    leased_at: datetime | None = None
    gpu_leased_s: float = 0.0
    gpu_used_s: float = 0.0
    log_removed_at: datetime | None = None


@dataclass(frozen=True)
class Build:
    """A wheel by its key, made once for all who ask. `failure` holds the facts of a run that did not build.

    `native_key`: the same for all wheels whose compiled files are the same. `base_key`: the build whose compiled files
    this one takes; without one it is a native build. `ahead`: nobody waits for it yet.
    `used_at`: when somebody last asked for it. `due_at`, `sent_at`, `log_removed_at`: as of a probe. `turn`,
    `asked_at`: those of the first in turn of all who want it. `held`: all who want it are paused.
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
    turn: str = ""
    asked_at: datetime | None = None
    held: bool = False
    due_at: datetime | None = None
    sent_at: datetime | None = None
    log_removed_at: datetime | None = None


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
    """`out`: why it was taken out and gets no probes; empty while it is in. `labels`: what its operator says of it;
    `models`: those that its folder of models holds, as in "Qwen/Qwen3-0.6B"."""

    name: str
    slots: int
    seen_at: datetime
    state: str
    roles: tuple[str, ...] = ("build", "run")
    facts: dict[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    out: str = ""
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
