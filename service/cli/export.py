"""firstbad export: what a bisection found, as a file to pass on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from firstbad.steering import Format
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Id, Json, Url
from service.cli.status import CommandError

FORMATS: tuple[str, ...] = get_args(Format)


def _format(written: str) -> str:
    if written not in FORMATS:
        raise typer.BadParameter(f"{written!r} is not one of {', '.join(FORMATS)}")
    return written


def export(
    id: Id,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            parser=_format,
            help="json; md for an issue; html; log for git bisect replay; junit for a CI.",
        ),
    ] = "md",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else it is printed.")] = None,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the report on a bisection to pass it on, or write it into a file."""
    with connect(url) as client:
        report = client.report(client.find(id), cast(Format, "json" if as_json else format))
    if output is None:
        sys.stdout.buffer.write(report if report.endswith(b"\n") else report + b"\n")
        sys.stdout.flush()
        return
    try:
        output.write_bytes(report)
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise CommandError(f"{output}: {reason}", "name a file that can be written with -o") from None
