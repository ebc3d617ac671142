"""Commands that look at one bisection: watch and show."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli import asked, screen, status, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Id, Json, Url
from service.cli.show import show


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
