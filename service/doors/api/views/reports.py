"""Bisections, their answers, and the machines that they ran on."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from service.domain.budget import Priority
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState
from service.domain.recipe import ModelCache
from service.doors.api.views.asked import BudgetView, DepsView, FixupView, RequestView, ResourcesView
from service.doors.api.views.base import Trouble, View
from service.doors.api.views.runs import BuildView, ProbeView


class CommitView(View):
    sha: str
    subject: str
    author: str
    committed_at: datetime
    parents: tuple[str, ...] = ()


class BisectionLinks(View):
    self: str
    probes: str
    events: str
    page: str | None = Field(default=None, description="The same for people; null of an older service.")
    metric: str | None = Field(default=None, description="What was measured; null where it is no number.")
    picture: str | None = Field(default=None, description="That, drawn as SVG.")


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
    notes: tuple[str, ...] = Field(default=(), description="What was done differently than asked.")
    priority: Priority = Priority.NORMAL
    clone_of: str | None = Field(default=None, description="Id of the one whose request this one's was made from.")
    paused_at: datetime | None = Field(default=None, description="Since when nothing new is begun for it.")
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


class SpentView(View):
    """What it has cost, as of its budget. `gpu_s`: cards times seconds, of what runs too."""

    probes: int = 0
    wall_s: float = 0.0
    gpu_s: float = 0.0


class OverrideView(View):
    """What a person says of a commit. `verdict`: null took back what was said before."""

    sha: str
    verdict: Verdict | None
    by: str
    why: str
    at: datetime


class ReportView(BisectionView):
    headline: str
    explanation: tuple[str, ...]
    ends: Ends
    answer: AnswerView | None
    evidence: tuple[ProofView, ...]
    probes_done: int
    probes_running: tuple[ProbeView, ...]
    wheels: WheelsView = WheelsView()
    drift: tuple[DriftView, ...] = ()
    probes_waiting: int = Field(default=0, description="Probes that wait for their turn.")
    probes_sent: int = Field(default=0, description="Probes that were sent and that no node has begun.")
    spent: SpentView = SpentView()
    budget: BudgetView = Field(default=BudgetView(), description="As it is now.")
    overrides: tuple[OverrideView, ...] = Field(
        default=(), description="Verdicts by hand, in the order in which they were said; of a commit the last counts."
    )
    request: RequestView


class EventView(View):
    id: int
    at: datetime
    kind: str
    data: dict[str, object]


class GpuView(View):
    index: int
    model: str = Field(description="As its driver names it.")
    gpu_class: str = Field(description="That name as it stands in queues.")
    memory_bytes: int


class NodeView(View):
    name: str
    slots: int
    seen_at: datetime
    state: str
    roles: tuple[str, ...] = ()
    facts: dict[str, str]
    gpus: tuple[GpuView, ...] = ()
    out: str = Field(default="", description="Why it was taken out and gets no probes; empty while it is in.")
    labels: tuple[str, ...] = Field(default=(), description="What its operator says of it.")
    models: tuple[str, ...] = Field(default=(), description="Those that its folder of models holds.")


class BisectionList(View):
    items: tuple[BisectionView, ...]
    next: str | None = Field(default=None, description="Path of the next page; null of the last one.")


class ProbeList(View):
    """By number."""

    items: tuple[ProbeView, ...]
    next: str | None = Field(default=None, description="Path of the next page; null of the last one.")


class BuildList(View):
    """Of a bisection oldest first; of all newest first."""

    items: tuple[BuildView, ...]
    next: str | None = Field(default=None, description="Path of the next page; null of the last one.")


class EventList(View):
    """Oldest first. `last` is the id to give as `after` next time."""

    items: tuple[EventView, ...]
    last: int


class NodeList(View):
    items: tuple[NodeView, ...]
    next: str | None = Field(default=None, description="Path of the next page; null of the last one.")


class RecipeView(View):
    """How a project is built and run, where a request says nothing else. Of secrets the names alone."""

    name: str
    build: str | None = Field(description="Null: nothing is built, and the reproduction runs in the source tree.")
    build_network: str
    build_timeout_s: float
    image: str | None
    network: str
    env: dict[str, str]
    package: str | None
    wheel_paths: tuple[str, ...]
    native_paths: tuple[str, ...]
    overlay: str | None
    wheel_indexes: tuple[str, ...]
    deps: DepsView
    fixups: tuple[FixupView, ...]
    resources: ResourcesView
    secrets: tuple[str, ...] = Field(description="Names alone; the nodes have their values.")
    model_cache: ModelCache


class RecipeList(View):
    """By name."""

    items: tuple[RecipeView, ...]


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
