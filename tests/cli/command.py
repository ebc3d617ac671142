"""Runs the command in a process forked from one that has imported it: importing takes longer than most commands do."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.cli import main
from service.cli.index import ENTRIES
from service.doors.api.views import View

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__])

for name, entry in ENTRIES.items():
    entry.load(name)
for view in View.__subclasses__():
    view.model_rebuild()


def run(arguments: Sequence[str], folder: Path, env: Mapping[str, str], streams: Path) -> int | None:
    """The exit status. `streams` is a folder: `in` is read, `out` and `err` are written."""
    process = FORKING.Process(target=_as_a_command, args=(tuple(arguments), folder, dict(env), streams))
    process.start()
    process.join(120)
    return process.exitcode


def _as_a_command(arguments: tuple[str, ...], folder: Path, env: dict[str, str], streams: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY)):
        os.dup2(os.open(streams / name, flags), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.argv = ["firstbad", *arguments]
    main()
