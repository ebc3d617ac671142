"""The mappings inside a request."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.domain.metric import Better
from service.doors.api.fields import AsOf, Command, Line, Measure, Ref, Strict, Text


class ReadyBody(Strict):
    """When the server counts as ready: at the first of the two that is given, and no later than `within`."""

    http: Line | None = Field(None, description="Path that answers 200 once the server is ready.", examples=["/health"])
    log: Line | None = Field(
        None, description="Text, or regular expression (Python's), of a line that the server prints once it is ready."
    )
    within: Measure | None = Field(
        None, description="How long the start may take: seconds, or like 90s, 20m, 1h30m.", examples=["20m"]
    )


class ServeBody(Strict):
    """A server under test."""

    command: Command = Field(description="Shell command that starts it and stays in the foreground.")
    ready: ReadyBody | None = None
    port: int | None = Field(
        None, ge=1, le=65535, description="Where it listens, unless it takes $FIRSTBAD_PORT.", examples=[8000]
    )


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


class ControlBody(Strict):
    """What must pass where the reproduction fails, or that failure does not count: `replace`, or one of its own."""

    replace: dict[Annotated[str, Field(min_length=1)], Text] | None = Field(
        None,
        max_length=50,
        description="Texts of script, serve.command and check, each with what the control has in its place.",
        examples=[{'"num_speculative_tokens": 2': '"num_speculative_tokens": 3'}],
    )
    script: Text | None = Field(None, description="As in the request.")
    serve: ServeBody | None = Field(None, description="As in the request.")
    check: Text | None = Field(None, description="As in the request.")


class MetricBody(Strict):
    """A number that got worse, in the output of the check, or of the script; one of `pattern` and `json`."""

    pattern: Text | None = Field(
        None,
        description="Regular expression (RE2's) whose group is the number.",
        examples=[r"Output token throughput \(tok/s\): +([0-9.]+)"],
    )
    json_path: Text | None = Field(
        None,
        alias="json",
        description="JSONPath to the number in the last JSON document that is printed.",
        examples=["$.results[0].throughput"],
    )
    better: Better = Field(description="Which way is good.")


class ResourcesBody(Strict):
    """What a run gets; each key goes before the recipe's."""

    gpus: int | None = Field(None, description="GPUs of one model, on one node.", examples=[4])
    gpu: Line | None = Field(
        None, description="Regular expression (RE2's) that the GPUs' model is found by.", examples=["H800|H100"]
    )
    shm: Measure | None = Field(None, description="Shared memory.", examples=["16GiB"])
    memory: Measure | None = Field(None, description="Memory; more ends the run.", examples=["64GiB", 68719476736])
    cpus: float | None = Field(None, description="CPUs' worth of time.", examples=[8, 0.5])
    pids: int | None = Field(None, description="Processes and threads at once.", examples=[4096])
