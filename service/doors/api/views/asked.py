"""A request with every default filled in."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from service.domain.bisection import FailureIn, OtherFailures
from service.domain.budget import Priority
from service.domain.metric import Aggregate, Better
from service.domain.recipe import ModelCache, SandboxKind
from service.doors.api.views.base import View


class ServeView(View):
    command: str
    ready_http: str | None
    ready_log: str | None
    within_s: float
    port: int = 8000


class ReproductionView(View):
    script: str | None
    serve: ServeView | None
    check: str | None


class ColumnView(View):
    """Of the last CSV table that is printed, where the other columns hold these values."""

    column: str = Field(validation_alias=AliasChoices("column", "name"))
    where: dict[str, str]


class ThresholdView(View):
    """`relative`: a share of the good end's number, else in the metric's unit."""

    value: float
    relative: bool


class MetricView(View):
    """How the number is found: by one of `pattern`, `json_path` and `csv`, also where a reader was named."""

    name: str = "metric"
    better: Better
    reader: str = Field(default="", description="The ready-made one that it came from; empty for none.")
    pattern: str | None = None
    json_path: str | None = None
    csv: ColumnView | None = None
    unit: str = Field(default="", description="Where none is printed.")
    unit_path: str | None = None
    threshold: ThresholdView | None = Field(default=None, description="Null: whatever can be told apart.")
    aggregate: Aggregate | None = Field(default=None, description="Null: a run may print one number alone.")


class MeasuringView(View):
    """Runs of the check before the one that counts; runs of each end at most; after how many measured commits an end
    is measured again, 0 being never."""

    warmup: int
    runs: int
    recheck: int


class ResourcesView(View):
    """Null: not limited. `gpu`: null is any model."""

    gpus: int
    gpu: str | None
    shm_bytes: int | None
    memory_bytes: int | None
    cpus: float | None
    pids: int | None
    cpuset: str | None = None
    numa: int | None = None
    labels: tuple[str, ...] = Field(default=(), description="What the node's operator must say of it.")
    models: tuple[str, ...] = Field(default=(), description="What its folder of models must hold.")


class BudgetView(View):
    """Null: not limited. `gpu_s`: cards times seconds."""

    probes: int | None = None
    wall_s: float | None = None
    gpu_s: float | None = None


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
    control: ReproductionView | None = Field(default=None, description="Written out in full.")
    other_failures: OtherFailures = OtherFailures.SKIP
    metric: MetricView | None = Field(default=None, description="The one that decides.")
    other_metrics: tuple[MetricView, ...] = Field(default=(), description="Measured beside it.")
    measuring: MeasuringView | None = Field(default=None, description="Null without a metric.")
    resources: ResourcesView | None = None
    secrets: tuple[str, ...] = Field(default=(), description="Names alone.")
    model_cache: ModelCache = ModelCache.NONE
    priority: Priority = Field(default=Priority.NORMAL, description="At its beginning.")
    budget: BudgetView = BudgetView()
    notes: tuple[str, ...] = Field(default=(), description="What was done to a pasted script, and why not more.")
