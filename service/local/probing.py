"""One probe: the commit checked out in a work tree, the user's files laid over it, the script run, its log read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from service.domain.evidence import Log, Outcome
from service.local import containers, laid, processes
from service.local.asked import CHECKOUT, SCRIPT, Asked, Seen, Want
from service.local.git import UNSET, GitFailed
from service.local.log import RunFolder
from service.local.observing import observed
from service.local.processes import Order, Ran, Stop
from service.local.worktrees import WorkTree, inside


@dataclass(frozen=True)
class Bench:
    """What all probes of a run share. `borrowed`: folders that work trees need to be read with."""

    asked: Asked
    folder: RunFolder
    borrowed: tuple[Path, ...]
    cap_bytes: int
    engine: containers.Engine | None = None


def probe(bench: Bench, number: int, want: Want, tree: WorkTree, stop: Stop) -> Seen:
    """Errors: processes.Stopped; processes.NotStarted and worktrees.NoRoom, which are the machine's doing."""
    began_at, began = datetime.now(UTC), monotonic()
    seen = Seen(number, want.sha, want.purpose, Outcome(SCRIPT), began_at, 0.0)
    try:
        tree.checkout(want.sha, bench.asked.clean)
        laid.lay([name for name, _ in bench.asked.laid], bench.folder.files, tree.path)
    except GitFailed as error:
        outcome = Outcome(CHECKOUT, first_error=str(error))
        return replace(seen, outcome=outcome, seconds=monotonic() - began)
    except OSError as error:
        outcome = Outcome(CHECKOUT, first_error=f"{error.filename}: {error.strerror}")
        return replace(seen, outcome=outcome, seconds=monotonic() - began)
    log = bench.folder.log_of(number, want.sha)
    ran = _run(bench, want.sha, tree.path, log, stop)
    outcome = _outcome(ran, log, bench.folder.path)
    return replace(
        seen,
        outcome=outcome,
        seconds=monotonic() - began,
        log=str(log.relative_to(bench.folder.path)),
        left=ran.left,
    )


def _run(bench: Bench, sha: str, tree: Path, log: Path, stop: Stop) -> Ran:
    asked, mark = bench.asked, uuid.uuid4().hex
    cwd = inside(tree, asked.folder)
    env = (("FIRSTBAD_SHA", sha), ("GIT_CEILING_DIRECTORIES", str(tree.parent)), *asked.env)
    order = Order(
        command=["env", *UNSET, *(f"{name}={value}" for name, value in env), *asked.command],
        cwd=cwd,
        log=log,
        cap_bytes=bench.cap_bytes,
        mark=mark,
        timeout_s=asked.timeout_s,
        held=(bench.folder.lock,),
    )
    if asked.container is None or bench.engine is None:
        return processes.run(order, stop)
    home = tree.parent / "home"
    home.mkdir(exist_ok=True)
    name = f"firstbad-{mark}"
    place = containers.Place(bench.folder.name, cwd, asked.command, [tree, home], bench.borrowed)
    stop.check()
    bench.engine.create(asked.container, place, name, [("HOME", str(home)), *env])
    order = replace(order, command=containers.start(name), cleanup=containers.removal([name]))
    return _in_container(bench.engine, order, name, stop)


def _in_container(engine: containers.Engine, order: Order, name: str, stop: Stop) -> Ran:
    try:
        ran = processes.run(order, stop)
    except BaseException:
        containers.remove([name])
        raise
    if ran.timed_out:
        return ran
    ended = engine.ended(name)
    return replace(ran, exit_status=ended.exit_status, signal=None, out_of_memory=ended.out_of_memory)


def _outcome(ran: Ran, log: Path, folder: Path) -> Outcome:
    found = observed(log, hang=ran.timed_out)
    failed = ran.exit_status != 0
    return Outcome(
        SCRIPT,
        exit_status=ran.exit_status,
        signal=ran.signal,
        timed_out=ran.timed_out,
        out_of_memory=ran.out_of_memory,
        signature=found.signature if failed else None,
        signs=found.signs,
        told=found.told,
        log=Log(str(log.relative_to(folder)), log.stat().st_size, last_lines=found.last_lines),
    )


def borrowed(common: Path, others: Sequence[Path]) -> tuple[Path, ...]:
    return (common, *(path for path in others if not path.is_relative_to(common)))
