"""What a request may hold, and its way from plain data to a Submission."""

from __future__ import annotations

from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from service.application.submit import ServeForm, Submission
from service.domain.bisection import FailureIn
from service.domain.recipe import Fixup, SandboxKind
from service.domain.recipe_rules import MOST_FIXUPS, MOST_PATTERNS


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul_byte", "it holds a NUL byte, which no file or shell can take")
    return text


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _number_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _date_text(value: object) -> object:
    """Of a loader that makes a date of 2025-09-25 without quotes."""
    return value.isoformat() if isinstance(value, date) else value


NoNul = AfterValidator(_no_nul)
Text = Annotated[str, NoNul]
Ref = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True), NoNul]
Line = Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), NoNul]
Command = Annotated[str, StringConstraints(min_length=1), NoNul]
Goods = Annotated[
    list[Ref], Field(min_length=1, max_length=20), BeforeValidator(_listed, json_schema_input_type=Ref | list[Ref])
]
Patterns = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=500), NoNul]],
    Field(max_length=MOST_PATTERNS),
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
]
AsOf = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40, strip_whitespace=True),
    BeforeValidator(_date_text, json_schema_input_type=str),
]
Duration = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40),
    BeforeValidator(_number_text, json_schema_input_type=str | float),
]
EnvName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Strict(BaseModel):
    """Refuses unknown keys by name; a mistyped key that is quietly ignored costs a night of probes."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    #: Keys that are known, but elsewhere, and why.
    elsewhere: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for key in data:
            if key in cls.elsewhere:
                context = {"key": str(key), "advice": cls.elsewhere[key]}
                raise PydanticCustomError("key_elsewhere", "{key} {advice}", context)
            if key not in cls.model_fields:
                raise PydanticCustomError("unknown_key", "{key}", {"key": str(key), "known": list(cls.model_fields)})
        return data


class ReadyBody(Strict):
    """When the server counts as ready: at the first of the two that is given, and no later than `within`."""

    http: Line | None = Field(None, description="Path that answers 200 once the server is ready.", examples=["/health"])
    log: Line | None = Field(None, description="Text that the server prints once it is ready.")
    within: Duration | None = Field(
        None, description="How long the start may take: seconds, or like 90s, 20m, 1h30m.", examples=["20m"]
    )


class ServeBody(Strict):
    """A server under test."""

    command: Command = Field(description="Shell command that starts it and stays in the foreground.")
    ready: ReadyBody | None = None


class DepsBody(Strict):
    """By what a wheel's dependencies are resolved. What was published later cannot be what broke the commit."""

    as_of: AsOf | None = Field(
        None,
        description="Resolve with what was published by then: the date of the bad commit for all commits, that of each "
        "commit, today, or a date.",
        examples=["bad", "commit", "today", "2025-09-25"],
    )
    constraints: Text | None = Field(
        None, description="Lines as in a pip constraints file.", examples=["torch==2.8.0\nnumpy<2\n"]
    )


class FixupBody(Strict):
    """A change that the commits of a range need before they build; one of `cherry_pick` and `patch`."""

    range: Line = Field(description="A..B as git means it: what B holds and A does not.", examples=["v1.3.0..v1.4.0"])
    cherry_pick: Ref | None = Field(None, description="The commit whose change is applied.")
    patch: Text | None = Field(None, description="The change as a diff.")


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

    good: Goods = Field(description="One ref, or several, where it worked.")
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
    timeout: Duration | None = Field(None, description="How long one run may take.", examples=["20m", 1200])
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


def submission(document: dict[str, Any]) -> Submission:
    """Errors: RequestValidationError, whose `loc` begins with "body"."""
    try:
        body = SubmissionBody.model_validate(document)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in errors]) from None
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
    )


def _tuple(listed: list[str] | None) -> tuple[str, ...] | None:
    return tuple(listed) if listed is not None else None


def _serve(body: ServeBody | None) -> ServeForm | None:
    if body is None:
        return None
    ready = body.ready or ReadyBody()
    return ServeForm(command=body.command, ready_http=ready.http, ready_log=ready.log, within=ready.within)


def nearest(key: str, known: list[str]) -> str | None:
    """The known key that was probably meant."""
    return next(iter(get_close_matches(key.lower().replace("-", "_"), known, n=1)), None)
