"""Who replaced the package under test: the line of the script, else of the log, that tells how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from worker import observe
from worker.contract import Replaced, Reproduction
from worker.run.job import InsideReplaced

LONGEST = 300
#: Commands that put packages somewhere or take them away, and those that make places to put them.
_COMMAND = re.compile(
    r"\b(?:pip[\d.]*|uv|conda|mamba|micromamba|poetry|pdm|easy_install|setup\.py)\b[^#\n]*"
    r"\b(?:install|uninstall|remove|develop|sync|add|update|upgrade|run)\b"
)
_MAKES = re.compile(r"\b(?:venv|virtualenv)\b")
_SAID = re.compile(rb"Successfully (?:un)?installed |^ ?[-+~] [\w.-]+==|Uninstalled \d+ package|Installed \d+ package")
#: What was taken away matters less than what came instead.
_TAKEN = ("-", "Successfully uninstalled", "Uninstalled")
#: Runs of what may stand between the words of a name.
_BETWEEN = r"[-_.]+"


def replaced(found: InsideReplaced, reproduction: Reproduction, log: Iterable[bytes], since: float) -> Replaced:
    """`log`: the lines of the run's log, with their time stamps; `since`: seconds of the epoch, when the reproduction
    began, since we install the package ourselves before that."""
    name = found.was.partition(" ")[0]
    scripts, began = list(_commands(reproduction)), stamp(since)
    later = (line for line in log if line[: len(began)] >= began)
    by = _of_path(scripts, found.now) if found.path else _of_install(scripts, later, name)
    return Replaced(was=found.was, now=found.now, by=by[:LONGEST])


def stamp(at: float) -> bytes:
    """As it stands before each line of a log."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}.{int(at % 1 * 1000):03d}Z".encode()


def _commands(reproduction: Reproduction) -> Iterator[str]:
    """Lines of all that was run, those that go on in the next one joined."""
    serve = reproduction.serve.command if reproduction.serve is not None else None
    for text in (reproduction.script, serve, reproduction.check):
        for line in (text or "").replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield " ".join(line.split())


def _of_path(scripts: list[str], now: str) -> str:
    folder = now.rpartition("/")[2]
    named = [line for line in scripts if "PYTHONPATH" in line]
    moved = [line for line in scripts if re.search(r"\bcd\b", line) and folder in line]
    return next(iter([*named, *moved]), "")


def _of_install(scripts: list[str], log: Iterable[bytes], name: str) -> str:
    """What names the package comes first: of the script, of the log; then the first command that could have done it."""
    installs = [line for line in scripts if _COMMAND.search(line)]
    named = re.compile(_BETWEEN.join(map(re.escape, re.split(_BETWEEN, name))), re.IGNORECASE)
    told = next((line for line in installs if named.search(line)), None)
    if told is None:
        said = list(_said(log, named))
        told = next(iter(sorted(said, key=lambda line: line.startswith(_TAKEN))), None)
    makes = [line for line in scripts if _MAKES.search(line)]
    return told or next(iter([*installs, *makes]), "")


def _said(log: Iterable[bytes], named: re.Pattern[str]) -> Iterator[str]:
    """As pip puts it (`Successfully installed demo-2.0`), and uv (` + demo==2.0`)."""
    for line in log:
        text = observe.without_stamp(line)
        if _SAID.search(text) and named.search(text.decode("utf-8", "replace")):
            yield observe.readable(text).strip()
