"""A request with every default filled in."""

from __future__ import annotations

from pydantic import Field

from service.domain.bisection import FailureIn, OtherFailures
from service.domain.metric import Better
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


class MetricView(View):
    pattern: str | None
    json_path: str | None
    better: Better


class ResourcesView(View):
    """Null: not limited. `gpu`: null is any model."""

    gpus: int
    gpu: str | None
    shm_bytes: int | None
    memory_bytes: int | None
    cpus: float | None
    pids: int | None


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
    metric: MetricView | None = None
    resources: ResourcesView | None = None
    secrets: tuple[str, ...] = Field(default=(), description="Names alone.")
    model_cache: ModelCache = ModelCache.NONE
    notes: tuple[str, ...] = Field(default=(), description="What was done to a pasted script, and why not more.")
