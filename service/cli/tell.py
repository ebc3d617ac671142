"""How a command tells what came of it: text for people or JSON for programs, and the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from pydantic import BaseModel
from rich.text import Text

from firstbad import Client
from firstbad.errors import NoService, ProblemError, passing
from service.cli import screen, status
from service.cli.show import show
from service.cli.status import CommandError, Status
from service.cli.watch import follow, range_line
from service.domain.lifecycle import BisectionState
from service.doors.api.views import ReportView

_LOOKING_UP = (BisectionState.QUEUED, BisectionState.PREPARING)


def to_the_end(client: Client, id: str, as_json: bool, told: Collection[str] = ()) -> None:
    """Follows it, then exits by how it ended. `told`: notes that need not be told again."""
    changes = client.changes(id, away=_say_waiting)
    ended(
        [each.report for each in changes][-1] if as_json else follow(screen.console(), changes, told), client, as_json
    )


def accepted(client: Client, id: str, wait_s: float, as_json: bool) -> None:
    """Waits until the commits are looked up, so that a wrong ref is told here and now."""
    for progress in client.changes(id, for_s=wait_s):
        report = progress.report
        if report.state not in _LOOKING_UP:
            break
    if not report.live:
        ended(report, client, as_json)
    if as_json:
        as_program(data(report))
        return
    out = screen.console()
    if report.candidates is None:
        out.print("The repository is still being fetched; a wrong ref shows when that is done.")
    else:
        out.print(Text(screen.clean(range_line(report))), soft_wrap=True)
    out.print(f"Follow it with: firstbad watch {id}")


def held_by(client: Client, report: ReportView) -> str:
    """Who paused or cancelled it; empty where nobody did."""
    if report.state is BisectionState.CANCELLED:
        told = [event for event in client.events(report.id).items if event.data.get("state") == "cancelled"]
    elif report.paused_at is not None and report.live:
        told = [event for event in client.events(report.id).items if event.kind == "paused"]
    else:
        return ""
    return str(told[-1].data.get("by", "")) if told else ""


def ended(report: ReportView, client: Client, as_json: bool) -> None:
    if as_json:
        as_program(data(report))
    else:
        out = screen.console()
        out.print("")
        show(out, report, client.url, curve=client.curve(report), by=held_by(client, report))
    raise typer.Exit(status.of(report.state))


@contextmanager
def interruptible(id: str) -> Iterator[None]:
    """Ctrl-C, or a service that stays away, ends the watching alone; both say how to go on."""
    try:
        yield
    except (NoService, ProblemError) as error:
        if not passing(error):
            raise
        told = status.explained(error)
        more = (*told.more, f"once it answers, go on with: firstbad watch {id}")
        raise CommandError(told.detail, *more, status=told.status) from None
    except KeyboardInterrupt:
        err = screen.console(stderr=True)
        err.print(f"\nThe bisection goes on. Follow it with: firstbad watch {id}; stop it with: firstbad cancel {id}")
        raise typer.Exit(Status.INTERRUPTED) from None


def data(view: BaseModel) -> dict[str, Any]:
    return view.model_dump(mode="json")


def as_program(told: object) -> None:
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    sys.stdout.flush()


def _say_waiting(error: NoService | ProblemError) -> None:
    screen.console(stderr=True).print(Text(f"firstbad: {error}; waiting for it", style="yellow"), soft_wrap=True)


def confirm(what: str) -> None:
    """Asks whether to do it. Errors: typer.Abort; CommandError where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise CommandError(f"this would {what}", "add --yes to do so")
    typer.confirm(f"{what[:1].upper()}{what[1:]}?", abort=True, err=True)
