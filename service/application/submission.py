"""What a user wrote, before it is looked at: None takes the recipe's or the service's default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.domain.recipe import Fixup


@dataclass(frozen=True)
class ServeForm:
    command: str
    ready_http: str | None = None
    ready_log: str | None = None
    within: str | float | None = None
    port: int | None = None


@dataclass(frozen=True)
class ControlForm:
    """Either `replace`, texts of the reproduction and what stands in their places, or one like the reproduction."""

    replace: Mapping[str, str] | None = None
    script: str | None = None
    serve: ServeForm | None = None
    check: str | None = None


@dataclass(frozen=True)
class CsvForm:
    column: str
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricForm:
    """`at`: what its part of the request is called, as in "metric.1" when it is one of several."""

    better: str | None = None
    pattern: str | None = None
    json: str | None = None
    csv: CsvForm | None = None
    reader: str | None = None
    name: str | None = None
    unit: str | None = None
    unit_path: str | None = None
    threshold: str | None = None
    aggregate: str | None = None
    decides: bool = False
    at: str = "metric"


@dataclass(frozen=True)
class MeasuringForm:
    warmup: int | None = None
    runs: int | None = None
    recheck: int | None = None


@dataclass(frozen=True)
class ResourcesForm:
    gpus: int | None = None
    gpu: str | None = None
    shm: str | float | None = None
    memory: str | float | None = None
    cpus: float | None = None
    pids: int | None = None
    cpuset: str | None = None
    numa: int | None = None
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class BudgetForm:
    probes: str | float | None = None
    wall: str | float | None = None
    gpu_hours: str | float | None = None


@dataclass(frozen=True)
class Submission:
    """docs/requests.md tells each key."""

    good: tuple[str, ...]
    bad: str
    project: str | None = None
    repo: str | None = None
    build: str | None = None
    image: str | None = None
    network: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    serve: ServeForm | None = None
    check: str | None = None
    failure: str | None = None
    sandbox: str | None = None
    width: int | None = None
    first_parent: bool = False
    timeout: str | float | None = None
    hang: str | None = None
    flaky: bool = False
    package: str | None = None
    wheel_paths: tuple[str, ...] | None = None
    native_paths: tuple[str, ...] | None = None
    overlay: str | None = None
    as_of: str | None = None
    constraints: str | None = None
    fixups: tuple[Fixup, ...] = ()
    failure_in: str | None = None
    control: ControlForm | None = None
    other_failures: str | None = None
    metrics: tuple[MetricForm, ...] = ()
    measuring: MeasuringForm | None = None
    resources: ResourcesForm = field(default_factory=ResourcesForm)
    secrets: tuple[str, ...] = ()
    model_cache: str | None = None
    priority: str | None = None
    budget: BudgetForm = field(default_factory=BudgetForm)
    pasted: bool = True
