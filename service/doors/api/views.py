"""What the API answers, and the client reads. Times are UTC; what ends in `_s` is in seconds."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.domain.bisection import FailureIn, Origin, Purpose
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.recipe import SandboxKind


class View(BaseModel):
    """A client of an older version reads a newer service: what it does not know is left aside."""

    #: Built when first used: the command line needs few of them, and building all takes longer than its request.
    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True, defer_build=True)


class FieldError(View):
    field: str
    detail: str
    value: str = ""
    advice: str = ""


class Trouble(View):
    """What was wrong: the sentence, the part of the request and the value it is about, and what to do."""

    type: str = Field(
        description="Stable name of the problem, as a relative reference.", examples=["/problems/not-found"]
    )
    title: str
    detail: str
    field: str = ""
    value: str = ""
    advice: str = ""


class Problem(Trouble):
    """Problem details (RFC 9457). `errors` lists every field when several are wrong."""

    status: int
    instance: str = ""
    errors: tuple[FieldError, ...] = ()


class CommitView(View):
    sha: str
    subject: str
    author: str
    committed_at: datetime
    parents: tuple[str, ...] = ()


class PhaseView(View):
    name: str
    at_s: float
    seconds: float


class LogView(View):
    bytes: int = Field(description="What the run wrote; the stored log is shorter when `cut`.")
    cut: bool
    last_lines: tuple[str, ...]


class OutcomeView(View):
    """The facts of one run; `exit_status` or `signal` are those of the phase `ended_in`."""

    ended_in: str
    exit_status: int | None
    signal: int | None
    ready: bool | None
    timed_out: bool
    out_of_memory: bool
    phases: tuple[PhaseView, ...]
    log: LogView | None
    failure_seen: str | None
    first_error: str | None = Field(default=None, description="Of a build: the line of its log that says most.")
    environment: dict[str, str]
    dependencies: dict[str, str] = Field(default={}, description="What the wheel was installed with; name to version.")


class FaultView(View):
    """What a node did wrong; never held against the commit."""

    kind: str
    message: str
    advice: str


class ProbeLinks(View):
    self: str
    log: str
    bisection: str


class ProbeView(View):
    id: str
    bisection: str
    number: int
    sha: str
    trial: int
    purpose: Purpose
    state: ProbeState
    verdict: Verdict | None
    reason: str
    attempt: int
    build: str | None = Field(default=None, description="Key of the build of its wheel.")
    node: str | None
    planned_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: OutcomeView | None
    faults: tuple[FaultView, ...]
    links: ProbeLinks


class ServeView(View):
    command: str
    ready_http: str | None
    ready_log: str | None
    within_s: float


class DepsView(View):
    as_of: str
    constraints: str


class FixupView(View):
    range: str
    cherry_pick: str | None
    patch: str | None


class RequestView(View):
    """The request with every default filled in."""

    repo: str
    good: tuple[str, ...]
    bad: str
    project: str
    build: str | None
    image: str | None
    network: str
    env: dict[str, str]
    script: str | None
    serve: ServeView | None
    check: str | None
    failure: str | None
    sandbox: SandboxKind
    width: int
    first_parent: bool
    flaky: bool
    timeout_s: float
    hang: str
    package: str | None
    wheel_paths: tuple[str, ...]
    native_paths: tuple[str, ...]
    overlay: str | None
    wheel_indexes: tuple[str, ...] = Field(description="Of the recipe.")
    deps: DepsView
    fixups: tuple[FixupView, ...]
    failure_in: FailureIn


class BisectionLinks(View):
    self: str
    probes: str
    events: str


class BisectionView(View):
    id: str
    state: BisectionState
    live: bool = Field(description="It may still change by itself.")
    repo: str
    good: tuple[str, ...] = Field(description="As they were written.")
    bad: str = Field(description="As it was written.")
    submitter: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    candidates: int | None = Field(description="Commits that may be the first bad one, at the start.")
    candidates_left: int | None
    expected_remaining: float | None = Field(description="Probes that are still expected.")
    first_bad: tuple[str, ...] = Field(description="The first bad commit, or the suspects in order; full SHAs.")
    problem: Trouble | None = Field(description="Why it was refused or failed.")
    links: BisectionLinks


class Ends(View):
    """Empty until the refs are resolved."""

    good: tuple[CommitView, ...]
    bad: CommitView | None


class AnswerView(View):
    """One commit when the state is `found`, several when it is `suspects`. `confidence` is between 0 and 1."""

    commits: tuple[CommitView, ...]
    why: str
    confidence: float | None


class ProofView(View):
    """A probe that the answer stands on."""

    commit: CommitView
    probe: ProbeView


class BuildView(View):
    """A wheel: made once for all probes whose content is the same."""

    key: str
    state: BuildState
    sha: str = Field(description="The commit that it was made from; others with the same content share it.")
    origin: Origin | None = Field(description="Built in full, an overlay on another's compiled files, or prebuilt.")
    native_key: str | None = Field(description="The same for all wheels with the same compiled files.")
    base_key: str | None = Field(description="The build whose compiled files were taken.")
    seconds: float | None
    node: str | None
    wheel: str | None = Field(description="Its file name.")
    wheel_bytes: int | None
    ahead: bool = Field(default=False, description="No probe has wanted it yet.")
    notes: tuple[str, ...] = Field(description="Why it was not made in a cheaper way.")


class WheelsView(View):
    """How many wheels came about in each way."""

    built: int = 0
    overlay: int = 0
    prebuilt: int = 0
    failed: int = Field(default=0, description="Commits that do not build.")
    reused: int = Field(default=0, description="Were there already, or were made for another bisection.")
    ahead: int = Field(default=0, description="Made while builders were idle, and wanted by no probe.")


class DriftView(View):
    """A dependency that differs between the first bad commit and its parent; empty where it was not installed."""

    name: str
    parent: str
    first_bad: str


class ReportView(BisectionView):
    headline: str
    explanation: tuple[str, ...]
    ends: Ends
    answer: AnswerView | None
    evidence: tuple[ProofView, ...]
    notes: tuple[str, ...]
    probes_done: int
    probes_running: tuple[ProbeView, ...]
    wheels: WheelsView = WheelsView()
    drift: tuple[DriftView, ...] = ()
    request: RequestView


class EventView(View):
    id: int
    at: datetime
    kind: str
    data: dict[str, object]


class NodeView(View):
    name: str
    slots: int
    seen_at: datetime
    state: str
    roles: tuple[str, ...] = ()
    facts: dict[str, str]


class BisectionList(View):
    """Newest first."""

    items: tuple[BisectionView, ...]


class ProbeList(View):
    """By number."""

    items: tuple[ProbeView, ...]


class BuildList(View):
    """Oldest first."""

    items: tuple[BuildView, ...]


class EventList(View):
    """Oldest first. `last` is the id to give as `after` next time."""

    items: tuple[EventView, ...]
    last: int


class NodeList(View):
    items: tuple[NodeView, ...]


class Root(View):
    """What answers here; the rest are paths."""

    name: str
    version: str
    api: str
    openapi: str
    health: str


class Health(View):
    status: str
    parts: dict[str, str] = {}
