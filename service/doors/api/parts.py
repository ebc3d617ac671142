"""The mappings inside a request."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from service.domain.metric import Aggregate, Better
from service.doors.api.fields import AsOf, Command, Cpus, Line, Measure, Names, Ref, Strict, Text


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


def _column(value: object) -> object:
    return {"column": value} if isinstance(value, str) else value


class CsvBody(Strict):
    """A number in the last CSV table that is printed; only `column`, when it is a name alone."""

    column: Line = Field(description="The column's name.", examples=["avg_ts"])
    where: dict[Annotated[str, Field(min_length=1)], Text] = Field(
        {},
        max_length=10,
        description="Other columns, each with what it holds in the row.",
        examples=[{"test": "tg128"}],
    )


class MetricBody(Strict):
    """A number that got worse, in the output of the check, or of the script; one of `pattern`, `json`, `csv` and
    `reader` finds it."""

    pattern: Text | None = Field(
        None,
        description="Regular expression (RE2's) whose group is the number; or with groups `value` and `unit`.",
        examples=[r"Output token throughput \((?P<unit>tok/s)\): +(?P<value>[0-9.]+)"],
    )
    json_path: Text | None = Field(
        None,
        alias="json",
        description="JSONPath to the number in the last JSON document that is printed.",
        examples=["$.results[0].throughput"],
    )
    csv: Annotated[CsvBody, BeforeValidator(_column, json_schema_input_type=str | CsvBody)] | None = Field(
        None, description="Column of the last CSV table that is printed.", examples=["avg_ts"]
    )
    reader: Line | None = Field(
        None, description="The tool whose output it is, of those that are known.", examples=["vllm bench serve"]
    )
    name: Line | None = Field(
        None,
        description="What it is called; with `reader`, which of the tool's numbers it is.",
        examples=["output_throughput"],
    )
    better: Better | None = Field(None, description="Which way is good; a reader knows it of most of its numbers.")
    unit: Line | None = Field(None, description="What the number is in, where that is not printed.", examples=["ms"])
    unit_path: Text | None = Field(
        None, description="JSONPath to the unit, beside `json`.", examples=["$.benchmarks[0].time_unit"]
    )
    threshold: Measure | None = Field(
        None,
        description="The least worsening that counts: auto is what can be told apart; else a share of the good end's "
        "number, or a number in the metric's unit.",
        examples=["auto", "5%", 0.5],
    )
    aggregate: Aggregate | None = Field(
        None, description="What is made of several numbers of one run; without it several different ones are an error."
    )
    decides: bool = Field(False, description="Of several metrics, the one that decides; else it is the first.")


class MeasuringBody(Strict):
    """How often a number is measured."""

    warmup: int | None = Field(
        None, description="Runs of the check, or the script, before the one that counts.", examples=[1]
    )
    runs: int | None = Field(None, description="Runs of each end at most.", examples=[30])
    recheck: int | None = Field(
        None, description="After so many measured commits an end is measured again; 0 is never.", examples=[8]
    )


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
    cpuset: Cpus | None = Field(None, description="The CPUs that it may use, and no others.", examples=["0-3,8"])
    numa: int | None = Field(None, description="The node of memory that it is bound to, with its CPUs.", examples=[0])
    labels: Names = Field(
        [], description="What the operator says of a node; it gets none without them.", examples=[["nvlink"]]
    )
    models: Names = Field([], description="What the node's folder of models must hold.", examples=[["Qwen/Qwen3-0.6B"]])


class BudgetBody(Strict):
    """What it may cost: once that is spent the bisection ends with what is known so far."""

    probes: Measure | None = Field(None, description="Probes that are tried, both ends included.", examples=[40])
    wall: Measure | None = Field(
        None,
        description="Time since it was submitted, pauses left out: seconds, or like 90s, 20m, 6h.",
        examples=["6h"],
    )
    gpu_hours: Measure | None = Field(
        None, description="Hours of one card, summed over cards and attempts.", examples=[20, 0.5]
    )
