"""firstbad submit: a request file becomes a bisection, or is told what it would become."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from service.cli import foreseen, isolation, requests, screen, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Json, Url
from service.cli.status import Status
from service.doors.api.views.previews import DryRunView


def submit(
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="YAML or JSON file; - for standard input.")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it to the end.")] = False,
    change: Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="Set a key, like good=v1.4.0.")] = [],  # noqa: B006
    script: Annotated[Path | None, typer.Option(help="Take the script from this file.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and begin nothing.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="Sent again with this key, it begins no second one.")
    ] = None,
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the refs to be looked up.")] = 15,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Start a bisection: print its id, and what its range is once that is known."""
    document = requests.read(request, change, script)
    with connect(url) as client:
        if dry_run:
            _show(client.dry_run(document), as_json)
            return
        made = client.submit(document, key)
        out = screen.console(stderr=as_json)
        out.print(Text.assemble("Bisection ", (made.id, "bold"), f" at {client.url(made.links.self)}"), soft_wrap=True)
        for note in made.notes:
            out.print(Text(f"note: {screen.clean(note)}"), soft_wrap=True)
        with tell.interruptible(made.id):
            asked_for = client.bisection(made.id).request
            for note in isolation.told(client.nodes(), asked_for.sandbox, online=asked_for.network != "none"):
                out.print(Text(f"note: {note}"), soft_wrap=True)
            if watch:
                tell.to_the_end(client, made.id, as_json, told=made.notes)
            tell.accepted(client, made.id, wait_s, as_json)


def _show(found: DryRunView, as_json: bool) -> None:
    if as_json:
        tell.as_program(tell.data(found))
    else:
        foreseen.show(screen.console(), found)
    if found.problems:
        raise typer.Exit(Status.USAGE)
