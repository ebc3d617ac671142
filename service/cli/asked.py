"""A request as it would be run, on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from service.cli import screen
from service.domain.duration import spoken
from service.domain.size import told
from service.doors.api.views import MetricView, ReproductionView, RequestView, ServeView


def show(out: Console, request: RequestView) -> None:
    grid = screen.pairs()
    for name, said in _rows(request):
        grid.add_row(name, screen.clean(said) if "\n" not in said else _lines(said))
    screen.put(out, Text("Nothing was begun. This is what would be run:", style="bold"))
    out.print("")
    screen.put(out, grid)


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
        yield "metric", _metric(request.metric)
    if request.control is not None:
        yield from _control(request.control)
    if request.env:
        yield "env", ", ".join(request.env)
    if request.secrets:
        yield "secrets", ", ".join(request.secrets)
    for note in request.notes:
        yield "note", note


def _reproduction(script: str | None, serve: ServeView | None, check: str | None, of: str) -> Iterator[tuple[str, str]]:
    if script is not None:
        yield f"{of}script", script.rstrip()
    if serve is not None:
        ready = f"it answers {serve.ready_http} on port {serve.port}" if serve.ready_http else ""
        printed = f"it prints {serve.ready_log!r}" if serve.ready_log else ""
        yield f"{of}serve", serve.command.rstrip()
        yield f"{of}ready", f"when {' and '.join(filter(None, (ready, printed)))}, within {spoken(serve.within_s)}"
        yield f"{of}check", check.rstrip() if check is not None else "none: it is good once it is ready"


def _control(control: ReproductionView) -> Iterator[tuple[str, str]]:
    yield from _reproduction(control.script, control.serve, control.check, "control ")


def _metric(metric: MetricView) -> str:
    found = f"what {metric.pattern!r} finds" if metric.pattern is not None else f"what stands at {metric.json_path}"
    return f"{found}; {metric.better} is better"


def _another(request: RequestView) -> str:
    return "bad, too" if request.other_failures == "bad" else "a skip"


def _sandbox(request: RequestView) -> Iterator[str]:
    yield str(request.sandbox) + (f" {request.image}" if request.image and request.sandbox == "docker" else "")
    yield f"network {request.network}"
    yield f"at most {spoken(request.timeout_s)} a run"
    wanted = request.resources
    if wanted is not None:
        if wanted.gpus:
            yield f"{screen.count(wanted.gpus, 'GPU')}{f' ({wanted.gpu})' if wanted.gpu else ''}"
        for size, what in ((wanted.shm_bytes, "shared memory"), (wanted.memory_bytes, "memory")):
            if size is not None:
                yield f"{told(size)} of {what}"
        for number, what in ((wanted.cpus, "CPUs"), (wanted.pids, "processes")):
            if number is not None:
                yield f"{number:g} {what}"
    if request.model_cache != "none":
        yield f"models {request.model_cache}"


def _lines(said: str) -> str:
    return "\n".join(screen.clean(line) for line in said.split("\n"))
