"""Commands that look: watch, show and list."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from firstbad.calls import PAGE, Sort
from service.cli import asked, complete, screen, status, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Id, Json, Url, state_of
from service.cli.show import bisections, show
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState


def watch(id: Id, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Follow a bisection until it ends."""
    with connect(url) as client:
        found = client.find(id)
        with tell.interruptible(found):
            tell.to_the_end(client, found, as_json)


def show_one(
    id: Id,
    probes: Annotated[bool, typer.Option("--probes", help="Every probe and every build, too.")] = False,
    request: Annotated[bool, typer.Option("--request", help="All that was asked for, with the defaults.")] = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show where a bisection stands: the first bad commit, and what that stands on."""
    with connect(url) as client:
        report = client.bisection(client.find(id))
        tried, made = (client.probes(report.id), client.builds(report.id)) if probes else ((), ())
        if as_json:
            lists = {"probes": tried, "builds": made} if probes else {}
            more = {name: [tell.data(each) for each in items] for name, items in lists.items()}
            tell.as_program({**tell.data(report), **more})
        else:
            out = screen.console()
            show(out, report, client.url, tried, made, client.curve(report), tell.held_by(client, report))
            if request:
                asked.section(out, report.request)
    raise typer.Exit(status.of(report.state))


def list_all(
    state: Annotated[
        list[BisectionState],
        typer.Option(
            metavar="STATE",
            parser=state_of,
            autocompletion=complete.states,
            help="Only those in this state; may be repeated.",
        ),
    ] = [],  # noqa: B006
    live: Annotated[bool, typer.Option("--live", help="Only those that have not ended.")] = False,
    project: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=complete.recipes, help="Only those of this recipe.")
    ] = None,
    submitter: Annotated[str | None, typer.Option(metavar="NAME", help="Only those that this one submitted.")] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those that asked for something with it.")
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="By when they were submitted, or have ended; with a minus the last first.")
    ] = "-created",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many at most.")] = 20,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """List bisections, newest first."""
    states = {*state, *(LIVE_BISECTIONS if live else ())}
    with connect(url) as client:
        if limit <= PAGE:
            items = client.bisections(states, limit, project=project, submitter=submitter, text=text, sort=sort)
        else:
            every = client.every_bisection(states, project=project, submitter=submitter, text=text, sort=sort)
            items = tuple(islice(every, limit))
    if as_json:
        tell.as_program([tell.data(item) for item in items])
    elif items:
        out = screen.console()
        screen.put(out, bisections(items, out.width))
    elif states or project or submitter or text:
        screen.console(stderr=True).print("No bisection is like that; firstbad list shows the newest of all.")
    else:
        screen.console(stderr=True).print("No bisections. Start one with: firstbad submit request.yaml")
