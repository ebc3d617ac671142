"""A request as it would be run, on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.cli import screen
from service.domain import threshold
from service.domain.budget import Priority
from service.domain.duration import spoken
from service.domain.metric import Threshold
from service.domain.size import told
from service.doors.api.views import (
    BudgetView,
    MeasuringView,
    MetricView,
    ReportView,
    ReproductionView,
    RequestView,
    ResourcesView,
    ServeView,
)


def would_run(out: Console, request: RequestView) -> None:
    screen.put(out, Text("Nothing was begun. This is what would be run:", style="bold"))
    out.print("")
    screen.put(out, _grid(request))


def section(out: Console, request: RequestView) -> None:
    """Of a report."""
    out.print("")
    screen.put(out, Text("Request", style="bold"))
    screen.put(out, Padding(_grid(request), (0, 0, 0, 2), expand=False))


def _grid(request: RequestView) -> Table:
    grid = screen.pairs()
    for name, said in _rows(request):
        grid.add_row(name, screen.clean(said) if "\n" not in said else screen.clean_lines(said))
    return grid


def _rows(request: RequestView) -> Iterator[tuple[str, str]]:
    yield "repository", request.repo
    yield "range", f"good {', '.join(request.good)} .. bad {request.bad}"
    yield "recipe", request.project + (f": {request.build}" if request.build else ", which builds nothing")
    yield "sandbox", ", ".join(_sandbox(request))
    yield from _reproduction(request.script, request.serve, request.check, "")
    if request.failure_in == "build":
        yield "failure", "of the build itself"
    if request.failure:
        yield "failure", f"only what prints {request.failure!r}; another one is {_another(request)}"
    if request.metric is not None:
        yield "metric", "; ".join(_metric(request.metric))
    for metric in request.other_metrics:
        yield "beside it", "; ".join(_metric(metric))
    if request.measuring is not None:
        yield "measured", ", ".join(_measuring(request.measuring))
    if request.control is not None:
        yield from _control(request.control)
    yield from _turn(request)
    if request.env:
        yield "env", ", ".join(request.env)
    if request.secrets:
        yield "secrets", ", ".join(request.secrets)
    for note in request.notes:
        yield "note", note


def _turn(request: RequestView) -> Iterator[tuple[str, str]]:
    if request.priority is not Priority.NORMAL:
        yield "priority", str(request.priority)
    if limits := list(budget(request.budget)):
        yield "budget", ", ".join(limits)


def budget(most: BudgetView) -> Iterator[str]:
    if most.probes is not None:
        yield screen.count(most.probes, "probe")
    if most.wall_s is not None:
        yield f"{spoken(most.wall_s)} since it was submitted"
    if most.gpu_s is not None:
        yield f"{most.gpu_s / 3600:.4g} GPU hours"


def spent(report: ReportView) -> list[str]:
    """Of each limit, how much is spent."""
    most, cost = report.budget, report.spent
    told = []
    if most.probes is not None:
        told.append(f"{cost.probes} of {screen.count(most.probes, 'probe')}")
    if most.wall_s is not None:
        told.append(f"{spoken(cost.wall_s)} of {spoken(most.wall_s)}")
    if most.gpu_s is not None:
        told.append(f"{cost.gpu_s / 3600:.2f} of {most.gpu_s / 3600:.4g} GPU hours")
    return told


def _reproduction(script: str | None, serve: ServeView | None, check: str | None, of: str) -> Iterator[tuple[str, str]]:
    if script is not None:
        yield f"{of}script", script.rstrip()
    if serve is not None:
        ready = f"it answers {serve.ready_http} on port {_port(serve, check)}" if serve.ready_http else ""
        printed = f"it prints {serve.ready_log!r}" if serve.ready_log else ""
        yield f"{of}serve", serve.command.rstrip()
        yield f"{of}ready", f"when {' and '.join(filter(None, (ready, printed)))}, within {spoken(serve.within_s)}"
        yield f"{of}check", check.rstrip() if check is not None else "none: it is good once it is ready"


def _port(serve: ServeView, check: str | None) -> str:
    """As a worker chooses it: another one than wanted for a command that takes it, if the check is told of it, too."""
    told = check is None or "FIRSTBAD_PORT" in check or "FIRSTBAD_URL" in check
    movable = "FIRSTBAD_PORT" in serve.command and told
    return f"$FIRSTBAD_PORT ({serve.port} where that is free)" if movable else str(serve.port)


def _control(control: ReproductionView) -> Iterator[tuple[str, str]]:
    yield from _reproduction(control.script, control.serve, control.check, "control ")


def _metric(metric: MetricView) -> Iterator[str]:
    name = f"{metric.name}: " if metric.name != "metric" else ""
    yield f"{metric.name} of {metric.reader}" if metric.reader else f"{name}{_found(metric)}"
    yield f"{metric.better} is better"
    if metric.unit:
        yield f"in {metric.unit}"
    least = metric.threshold
    if least is None:
        yield "it is worse where it can be told apart"
    else:
        shown = threshold.told(Threshold(least.value, least.relative), metric.unit)
        yield f"it is worse from {shown} on"
    if metric.aggregate is not None:
        yield f"of several in a run the {metric.aggregate}"


def _found(metric: MetricView) -> str:
    if metric.pattern is not None:
        return f"what {metric.pattern!r} finds"
    if metric.csv is None:
        return f"what stands at {metric.json_path}"
    rows = " and ".join(f"{column} is {value!r}" for column, value in metric.csv.where.items())
    return f"the column {metric.csv.column!r}{f' where {rows}' if rows else ''}"


def _measuring(measuring: MeasuringView) -> Iterator[str]:
    yield f"{screen.count(measuring.warmup, 'warm-up run')} before each run" if measuring.warmup else "no warm-up runs"
    yield f"at most {screen.count(measuring.runs, 'run')} of each end"
    if measuring.recheck:
        yield f"an end again after {screen.count(measuring.recheck, 'measured commit')}"
    else:
        yield "no end again"


def _another(request: RequestView) -> str:
    return "bad, too" if request.other_failures == "bad" else "a skip"


def _sandbox(request: RequestView) -> Iterator[str]:
    yield str(request.sandbox) + (f" {request.image}" if request.image and request.sandbox == "docker" else "")
    yield f"network {request.network}"
    yield f"at most {spoken(request.timeout_s)} a run"
    if request.resources is not None:
        yield from wanted(request.resources)
    if request.model_cache != "none":
        yield f"models {request.model_cache}"


def wanted(most: ResourcesView) -> Iterator[str]:
    if most.gpus:
        yield f"{screen.count(most.gpus, 'GPU')}{f' ({most.gpu})' if most.gpu else ''}"
    for size, what in ((most.shm_bytes, "shared memory"), (most.memory_bytes, "memory")):
        if size is not None:
            yield f"{told(size)} of {what}"
    for number, what in ((most.cpus, "CPUs"), (most.pids, "processes")):
        if number is not None:
            yield f"{number:g} {what}"
    if most.cpuset is not None:
        yield f"on the CPUs {most.cpuset}"
    if most.numa is not None:
        yield f"on the node of memory {most.numa} and its CPUs"
    if most.labels:
        yield f"on a node labelled {', '.join(most.labels)}"
    if most.models:
        yield f"on a node that has {', '.join(most.models)}"
