"""Options and arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from service.client import DEFAULT_PORT

DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

Url = Annotated[str, typer.Option("--url", envvar="FIRSTBAD_URL", help="Where the service answers.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of a bisection, or its beginning.")]
