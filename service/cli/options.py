"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstbad import DEFAULT_PORT
from service.cli import complete
from service.domain.lifecycle import BisectionState

HOME = Path("~/.local/share/firstbad")
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

Url = Annotated[str, typer.Option("--url", envvar="FIRSTBAD_URL", help="Where the service answers.")]
Home = Annotated[Path, typer.Option(envvar="FIRSTBAD_HOME", help="Where everything is kept.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a bisection, or its beginning.", autocompletion=complete.ids)
]
LiveId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a bisection, or its beginning.", autocompletion=complete.live_ids)
]


def state_of(written: str) -> BisectionState:
    try:
        return BisectionState(written.replace("-", " "))
    except ValueError:
        several = "; for several, repeat --state" if "," in written else ""
        raise typer.BadParameter(f"{written!r} is not one of {', '.join(BisectionState)}{several}") from None
