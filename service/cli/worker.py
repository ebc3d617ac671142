"""firstbad worker: a worker in the foreground."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def worker(
    redis: Annotated[
        str | None, typer.Option(metavar="URL", envvar="FIRSTBAD_REDIS_URL", help="The service's Redis.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="FIRSTBAD_STORE_URL", help="The service's store of wheels and logs."),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", envvar="FIRSTBAD_NODE", help="What the machine is called.", show_default="its host name"
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(min=1, max=1024, envvar="FIRSTBAD_SLOTS", help="Builds and probes at once.", show_default="1"),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(metavar="ROLES", envvar="FIRSTBAD_ROLES", help="What it does.", show_default="build,run"),
    ] = None,
    sandboxes: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS", envvar="FIRSTBAD_SANDBOXES", help="What it runs code in.", show_default="docker,process"
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS", envvar="FIRSTBAD_LABELS", help="For requests that ask for one, like nvlink,rack=7."
        ),
    ] = None,
    work_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FIRSTBAD_WORK_DIR",
            help="For jobs and caches.",
            show_default="/var/tmp/firstbad-worker",
        ),
    ] = None,
) -> None:
    """Start a worker on this machine, for a service that runs elsewhere.

    It works in the foreground; Ctrl-C lets it end. All other settings are variables FIRSTBAD_…: docs/worker.md. See
    before with firstbad doctor whether the machine can be a node. A Redis with a password is better named by
    FIRSTBAD_REDIS_URL than here, where other users of the machine see it.
    """
    # A process of its own: the service knows nothing of the worker but what passes between them.
    from service import wiring

    given = {
        "REDIS_URL": redis,
        "STORE_URL": store,
        "NODE": node,
        "SLOTS": slots,
        "ROLES": roles,
        "SANDBOXES": sandboxes,
        "LABELS": labels,
        "WORK_DIR": work_dir,
    }
    told = {f"FIRSTBAD_{name}": str(value) for name, value in given.items() if value is not None}
    os.execve(sys.executable, [sys.executable, "-m", "worker"], {**wiring.environment(), **told})
