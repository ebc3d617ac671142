"""firstbad up: the whole service on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from firstbad import DEFAULT_PORT
from service.cli import screen, tell
from service.cli.options import DEFAULT_URL, HOME, Home
from service.cli.status import CommandError, Status


def up(
    home: Home = HOME,
    port: Annotated[
        int, typer.Option(envvar="FIRSTBAD_PORT", min=0, max=65535, help="Port on 127.0.0.1.")
    ] = DEFAULT_PORT,
    slots: Annotated[int, typer.Option(envvar="FIRSTBAD_SLOTS", min=1, max=256, help="Builds and probes at once.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Say where it answers as JSON, for programs.")] = False,
) -> None:
    """Start the whole service on this machine.

    Ctrl-C stops it, and what runs for it; a second start goes on where it was.
    """
    from pydantic import ValidationError

    from service import embedded, wiring
    from service.embedded_redis import NoRedis

    out = screen.console()
    for name, like in wiring.misspelt().items():
        screen.console(stderr=True).print(Text(f"note: {name} is no setting; did you mean {like}?"), soft_wrap=True)
    try:
        embedded.up(
            home, port, slots, lambda url: _ready_for_programs(url, home) if as_json else _ready(out, url, home)
        )
    except (embedded.CannotStart, NoRedis) as error:
        raise CommandError(str(error), status=Status.FAILED) from None
    except ValidationError as error:
        raise CommandError(*wiring.complaints(error)) from None
    if not as_json:
        out.print("Stopped.")


def _ready_for_programs(url: str, home: Path) -> None:
    tell.as_program({"url": url, "home": str(home.expanduser())})


def _ready(out: Console, url: str, home: Path) -> None:
    table = screen.pairs()
    table.add_row("submit", "firstbad submit request.yaml --watch" + ("" if url == DEFAULT_URL else f" --url {url}"))
    table.add_row("kept in", str(home.expanduser()))
    table.add_row("stop", "Ctrl-C")
    out.print(Text.assemble("firstbad is ready at ", (url, "bold")))
    screen.put(out, Padding(table, (0, 0, 0, 2), expand=False))
