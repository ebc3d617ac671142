"""firstbad logs: what a run or a build wrote."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from firstbad import Client
from service.cli import complete, screen
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Url
from service.cli.status import CommandError


def logs(
    probe: Annotated[
        str,
        typer.Argument(metavar="PROBE", help="Id of a probe, like b3f9c2a417.4.", autocompletion=complete.probe_ids),
    ],
    build: Annotated[bool, typer.Option("--build", help="That of the build of its wheel instead.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print it as it is written, until it ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as JSON, for programs.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the log of a probe, or of its build.

    With --follow, of one that runs what comes from now on and a little before; Ctrl-C ends only the following.
    """
    id, dot, number = probe.rpartition(".")
    with connect(url) as client:
        if not dot:
            known = client.probes(client.find(probe))
            listed = ", ".join(each.id for each in known) or "none yet"
            raise CommandError(f"{probe} is a bisection, and each of its probes has a log", f"name one of: {listed}")
        full = f"{client.find(id)}.{number}"
        pieces = _build_log(client, full, follow) if build else client.log(full, follow=follow)
        if as_json:
            _print_json(pieces)
        else:
            _print_log(pieces, at_once=follow)


def _print_log(pieces: Iterator[bytes], *, at_once: bool) -> None:
    out = sys.stdout
    writes = map(out.write, screen.clean_log(pieces)) if out.isatty() else map(out.buffer.write, pieces)
    for _ in writes:
        if at_once:
            out.flush()
    out.flush()


def _print_json(pieces: Iterator[bytes]) -> None:
    for line in screen.lines(pieces):
        sys.stdout.write(json.dumps({"line": line.decode("utf-8", "replace")}) + "\n")
        sys.stdout.flush()


def _build_log(client: Client, probe: str, follow: bool) -> Iterator[bytes]:
    key = client.probe(probe).build
    if key is None:
        raise CommandError(f"no wheel was built for the probe {probe}", "without --build its own log is printed")
    return client.build_log(key, follow=follow)
