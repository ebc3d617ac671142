"""What a request would come to, on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from service.cli import asked, screen
from service.domain.duration import spoken
from service.doors.api.views import CommitView
from service.doors.api.views.previews import DryRunView, SecondsView, StockView


def show(out: Console, found: DryRunView) -> None:
    asked.would_run(out, found.request)
    grid = screen.pairs()
    for name, said in _rows(found):
        grid.add_row(name, screen.clean(said))
    screen.put(out, grid)
    for problem in found.problems:
        screen.put(out, Text(f"It would be refused: {screen.clean(problem.detail)}", style="red"))
        if problem.advice:
            screen.put(out, Text(f"  {screen.clean(problem.advice)}"))


def _rows(found: DryRunView) -> Iterator[tuple[str, str]]:
    if found.range is not None:
        for commit in found.range.good:
            yield "good", _commit(commit)
        yield "bad", _commit(found.range.bad)
        yield "candidates", screen.count(found.range.candidates, "commit")
        yield "probes", f"about {found.range.expected_probes:.1f}, the ends included"
    if found.wheels is not None:
        yield "builds", _builds(found.wheels)
    if found.expected_s is not None:
        yield "time", _time(found.expected_s)
    elif found.range is not None:
        yield "time", "not known: nothing of this repository was run yet"
    if found.unread:
        yield "repository", found.unread
    for node in found.nodes:
        yield f"node {node.node}", "; ".join(node.why_not) or "could serve it now"
    if not found.nodes:
        yield "nodes", "there is none"
    for note in found.notes[len(found.request.notes) :]:
        yield "note", note


def _commit(commit: CommitView) -> str:
    return f"{commit.sha[:12]} {commit.committed_at:%Y-%m-%d} {commit.author}: {commit.subject}"


def _builds(wheels: StockView) -> str:
    there = "" if wheels.natives_there is None else f", {wheels.natives_there} of them in stock"
    stock = "" if wheels.different_there is None else f", {wheels.different_there} in stock"
    return (
        f"at most {wheels.likely} native: the range holds {wheels.natives} different{there}; "
        f"{screen.count(wheels.different, 'wheel')}{stock}"
    )


def _time(seconds: SecondsView) -> str:
    if seconds.most - seconds.least < 1.0:
        return f"about {spoken(seconds.most)}, as runs and builds of this repository took before"
    return f"{spoken(seconds.least)} to {spoken(seconds.most)}, as runs and builds of this repository took before"
