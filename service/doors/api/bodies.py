"""What a request may hold, and its way from plain data to a Submission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from service.application.metrics import MOST_METRICS
from service.application.submission import (
    BudgetForm,
    ControlForm,
    CsvForm,
    MeasuringForm,
    MetricForm,
    ResourcesForm,
    ServeForm,
    Submission,
)
from service.domain import refs
from service.domain.bisection import FailureIn, OtherFailures
from service.domain.budget import Priority
from service.domain.recipe import Fixup, ModelCache, SandboxKind
from service.domain.recipe_rules import MOST_FIXUPS, MOST_SECRETS
from service.doors.api.fields import Command, EnvName, Goods, Line, Measure, Patterns, Ref, Strict, Text
from service.doors.api.parts import (
    BudgetBody,
    ControlBody,
    DepsBody,
    FixupBody,
    MeasuringBody,
    MetricBody,
    ReadyBody,
    ResourcesBody,
    ServeBody,
)

B = TypeVar("B", bound=Strict)


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


#: A mapping alone is one metric.
Metrics = Annotated[
    list[MetricBody],
    Field(min_length=1, max_length=MOST_METRICS),
    BeforeValidator(_listed, json_schema_input_type=MetricBody | list[MetricBody]),
]


class SubmissionBody(Strict):
    """One bisection, as a user writes it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "project": "python",
                    "repo": "https://git.example.org/team/tinyserve.git",
                    "good": "v1.4.0",
                    "bad": "main",
                    "script": "tinyserve selfcheck\n",
                    "timeout": "10m",
                }
            ]
        }
    )

    elsewhere: ClassVar[dict[str, str]] = {
        "wheel_indexes": "is a key of recipes alone: nodes fetch from those addresses, so the operator names them"
    }

    good: Goods = Field(description="One ref, or several, where it worked. A range A..B is both ends, without `bad`.")
    bad: Ref = Field(description="The ref where it is broken.")
    project: Line | None = Field(None, description="Name of a recipe: how commits are built and run.")
    repo: Line | None = Field(None, description="URL or path of the git repository.")
    build: Command | None = Field(None, description="Build command, instead of the recipe's.")
    image: Line | None = Field(None, description="Container image, for the docker sandbox.")
    network: Line | None = Field(None, description="Network while the reproduction runs.")
    env: dict[EnvName, Text] = Field({}, max_length=200, description="Environment variables of the reproduction.")
    script: Text | None = Field(None, description="Shell script: exit 0 is good, 125 skip, 1 to 124 bad.")
    serve: ServeBody | None = Field(None, description="A server to start, instead of a script.")
    check: Text | None = Field(None, description="Shell script that runs once the server is ready.")
    failure: Line | None = Field(None, description="Text that only this failure prints.")
    sandbox: SandboxKind | None = Field(None, description="Where the reproduction runs.")
    width: int | None = Field(None, ge=1, le=1000, description="Probes in flight at most.")
    first_parent: bool = Field(False, description="Follow only the first parent of each merge.")
    flaky: bool = Field(
        False, description="A run may pass or fail by chance: try commits again until it is sure enough."
    )
    timeout: Measure | None = Field(None, description="How long one run may take.", examples=["20m", 1200])
    hang: Literal["skip", "bad"] | None = Field(None, description="What a run that meets the time limit means.")
    package: Line | None = Field(
        None, description="Name of the package that is built, so that no other one's wheel is taken for it."
    )
    wheel_paths: Patterns | None = Field(
        None,
        description="What goes into the wheel, as in .gitignore: commits that differ only elsewhere share one build.",
        examples=[["tinyserve/", "csrc/", "pyproject.toml"]],
    )
    native_paths: Patterns | None = Field(
        None,
        description="All that the compiled files are made from, as in .gitignore: commits that differ only elsewhere "
        "share one compilation.",
        examples=[["csrc/**", "setup.py"]],
    )
    overlay: Command | None = Field(
        None, description="The project's own way from $FIRSTBAD_BASE, a wheel with the same compiled files, to its own."
    )
    deps: DepsBody | None = Field(None, description="By what the wheel's dependencies are resolved.")
    fixups: list[FixupBody] = Field(
        [], max_length=MOST_FIXUPS, description="Applied, behind the recipe's, where history does not build."
    )
    failure_in: FailureIn | None = Field(
        None, description="Where the failure shows: in a run, or already in the build, which then is the reproduction."
    )
    control: ControlBody | None = Field(
        None, description="What must pass where the reproduction fails, or that failure does not count."
    )
    other_failures: OtherFailures | None = Field(None, description="What a failure that is another one means.")
    metric: Metrics | None = Field(
        None,
        description="A number that got worse, instead of a failure: the ends are measured until they differ. Of "
        "several the first decides, and the others are measured beside it.",
    )
    measuring: MeasuringBody | None = Field(None, description="How often the number is measured.")
    resources: ResourcesBody | None = Field(None, description="What a run gets.")
    secrets: list[Text] = Field(
        [],
        max_length=MOST_SECRETS,
        description="Names of variables whose values the nodes have and runs see. Values are never sent.",
        examples=[["HF_TOKEN"]],
    )
    model_cache: ModelCache | None = Field(
        None, description="How runs see the nodes' folder of models; no more than the recipe allows."
    )
    priority: Priority | None = Field(
        None, description="All that is high goes before what is normal, and that before what is low."
    )
    budget: BudgetBody | None = Field(None, description="What it may cost; without it there is no limit.")
    pasted: bool = Field(
        True,
        description="Take a pasted script apart: serve the server that it starts, check with what follows, leave out "
        "what makes environments or installs the package under test.",
    )

    @model_validator(mode="before")
    @classmethod
    def take_a_range_for_both_ends(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(given := {"good", "bad"} & data.keys()) == 1:
            written = data[given.pop()]
            one = written[0] if isinstance(written, list) and len(written) == 1 else written
            if isinstance(one, str) and isinstance(refs.read(one).form, refs.Pair):
                return {**data, "good": one, "bad": one}
        return data


def validated(kind: type[B], document: dict[str, Any]) -> B:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise RequestValidationError(
            [{**each, "loc": ("body", *_way(each["loc"], document))} for each in errors]
        ) from None


def submission(document: dict[str, Any]) -> Submission:
    """Errors: RequestValidationError, whose `loc` begins with "body"."""
    body = validated(SubmissionBody, document)
    return Submission(
        good=tuple(body.good),
        bad=body.bad,
        project=body.project,
        repo=body.repo,
        build=body.build,
        image=body.image,
        network=body.network,
        env=dict(body.env),
        script=body.script,
        serve=_serve(body.serve),
        check=body.check,
        failure=body.failure,
        sandbox=body.sandbox,
        width=body.width,
        first_parent=body.first_parent,
        flaky=body.flaky,
        timeout=body.timeout,
        hang=body.hang,
        package=body.package,
        wheel_paths=_tuple(body.wheel_paths),
        native_paths=_tuple(body.native_paths),
        overlay=body.overlay,
        as_of=body.deps.as_of if body.deps else None,
        constraints=body.deps.constraints if body.deps else None,
        fixups=tuple(Fixup(each.range, each.cherry_pick, each.patch) for each in body.fixups),
        failure_in=body.failure_in,
        control=_control(body.control),
        other_failures=body.other_failures,
        metrics=_metrics(body.metric or [], alone=not isinstance(document.get("metric"), list)),
        measuring=_measuring(body.measuring),
        resources=_resources(body.resources),
        secrets=tuple(body.secrets),
        model_cache=body.model_cache,
        priority=body.priority,
        budget=budget_form(body.budget),
        pasted=body.pasted,
    )


def _way(way: tuple[str | int, ...], document: dict[str, Any]) -> tuple[str | int, ...]:
    """As it was written: a metric alone is no list, and a column's name alone no mapping."""
    written = document.get("metric")
    if way[:1] != ("metric",):
        return way
    if not isinstance(written, list):
        way = (way[0], *way[2:])
    *outer, last = way
    return tuple(outer) if last == "column" and isinstance(_at(document, outer), str) else way


def _at(document: Any, way: Sequence[str | int]) -> object:
    for part in way:
        document = document[part]
    return document


def _tuple(listed: list[str] | None) -> tuple[str, ...] | None:
    return tuple(listed) if listed is not None else None


def _serve(body: ServeBody | None) -> ServeForm | None:
    if body is None:
        return None
    ready = body.ready or ReadyBody()
    return ServeForm(
        command=body.command, ready_http=ready.http, ready_log=ready.log, within=ready.within, port=body.port
    )


def _control(body: ControlBody | None) -> ControlForm | None:
    return ControlForm(body.replace, body.script, _serve(body.serve), body.check) if body is not None else None


def _metrics(bodies: list[MetricBody], *, alone: bool) -> tuple[MetricForm, ...]:
    return tuple(
        MetricForm(
            better=body.better,
            pattern=body.pattern,
            json=body.json_path,
            csv=CsvForm(body.csv.column, body.csv.where) if body.csv is not None else None,
            reader=body.reader,
            name=body.name,
            unit=body.unit,
            unit_path=body.unit_path,
            threshold=body.threshold,
            aggregate=body.aggregate,
            decides=body.decides,
            at="metric" if alone else f"metric.{place}",
        )
        for place, body in enumerate(bodies)
    )


def _measuring(body: MeasuringBody | None) -> MeasuringForm | None:
    return MeasuringForm(body.warmup, body.runs, body.recheck) if body is not None else None


def _resources(body: ResourcesBody | None) -> ResourcesForm:
    if body is None:
        return ResourcesForm()
    limits = (body.gpus, body.gpu, body.shm, body.memory, body.cpus, body.pids, body.cpuset, body.numa)
    return ResourcesForm(*limits, tuple(body.labels), tuple(body.models))


def budget_form(body: BudgetBody | None) -> BudgetForm:
    return BudgetForm(body.probes, body.wall, body.gpu_hours) if body is not None else BudgetForm()
