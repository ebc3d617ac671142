"""Wheels that need no build of their own: fetched from an index, or put together from that of another commit."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.tags import Tag, platform_tags

from worker import contract, observe
from worker.build import prebuilt, wheels
from worker.build.downloads import downloads
from worker.build.overlay import CannotOverlay, Inputs, overlay
from worker.build.project import Project
from worker.build.trees import read_tree
from worker.contract import Base, BuildOrder
from worker.errors import FixupFails, NodeFault, fault_of
from worker.pipeline.logs import keep_log
from worker.pipeline.runs import Run, Site
from worker.run.job import Job
from worker.run.logs import append
from worker.run.stop import Stop

#: Seconds for all indexes together: a build, which is the other way, takes no longer on most projects.
INDEXES_S = 600.0
#: The store does not have the base as it was.
LOST_BASE = "lost-base"
_LOST = ("missing-wheel", "damaged-wheel")
#: Faults that say that the base cannot be had, which a build does not need.
_NO_BASE = ("source", "order")


#: Runs a command that makes a wheel of another one, and keeps its job while it is looked at.
Overlaying = Callable[[str, Path], AbstractContextManager[tuple[Job, Run]]]


@dataclass(frozen=True)
class Ready:
    """A wheel in the job folder. `log`: of how it came about."""

    wheel: Path
    origin: Literal["prebuilt", "overlay"]
    log: contract.Log


@dataclass
class Build:
    """One order under way. `notes`: why not by a cheaper way, as far as is known by now."""

    site: Site
    order: BuildOrder
    job: Job
    stop: Stop
    notes: list[str] = field(default_factory=list)

    @property
    def tree(self) -> Path:
        return self.job.inputs / "tree.tar"

    @property
    def name(self) -> str:
        return f"{self.order.key}.{self.order.attempt}"

    def said(self, *lines: str) -> contract.Log:
        """Stores what there is to say of a wheel for which nothing ran. Errors: NodeFault."""
        log = self.job.root / "log"
        said = [f"firstbad: {line}" for line in (*self.notes, *lines)]
        try:
            append(log, *said)
            size = log.stat().st_size
        except OSError as error:
            raise fault_of(error, "writing the log") from error
        path = keep_log(self.site.store, log, self.name)
        return contract.Log(path=path, bytes=size, last_lines=tuple(said[-50:]))


def from_indexes(build: Build) -> Ready | None:
    """Errors: NodeFault, Stopped."""
    order = build.order
    if not order.indexes:
        return None
    if order.source.fixups:
        build.notes.append("no prebuilt wheel: fix-ups are applied to this commit before it is built")
        return None
    wanted = prebuilt.Wanted(order.source.sha, order.package, _version(build.tree), _tags(order.sandbox.python))
    with downloads(build.stop, min(INDEXES_S, order.limits.timeout_s)) as fetching:
        found = prebuilt.find(order.indexes, wanted, build.job.inputs, fetching)
    build.notes.extend(found.notes)
    if found.wheel is None:
        return None
    return Ready(found.wheel, "prebuilt", build.said(f"fetched {found.how}"))


def _version(tree: Path) -> str | None:
    try:
        found = Project(read_tree(tree)).table.get("version")
    except CannotOverlay:
        return None
    return found if isinstance(found, str) else None


def _tags(python: str | None) -> list[Tag]:
    major, minor = (int(part) for part in python.split(".")[:2]) if python else sys.version_info[:2]
    return prebuilt.fitting((major, minor), list(platform_tags()))


def from_base(build: Build, overlaying: Overlaying) -> Ready | None:
    """Errors: NodeFault, Stopped."""
    base = build.order.base
    if base is None:
        return None
    try:
        wheel = _fetched(build, base)
        if build.order.overlay_command is None:
            return _put_together(build, base, wheel)
        with overlaying(build.order.overlay_command, wheel) as (job, run):
            return _by_command(build, base, job, run)
    except (CannotOverlay, wheels.NoWheel) as why:
        build.notes.append(f"no overlay of the wheel of {base.source.sha[:12]}: {why}")
        return None


def _fetched(build: Build, base: Base) -> Path:
    """Errors: NodeFault, NoWheel."""
    name = base.wheel.rpartition("/")[2]
    wheels.check_name(name, build.order.package)
    folder = build.job.inputs / "base"
    try:
        folder.mkdir()
        build.site.store.get(base.wheel, folder / name, base.wheel_sha256)
    except NodeFault as fault:
        # Not to be compiled here and now: the service knows who else compiles this native code, or will.
        raise (NodeFault(LOST_BASE, fault.message, fault.advice) if fault.kind in _LOST else fault) from fault
    except OSError as error:
        raise fault_of(error, f"making {folder}") from error
    return folder / name


def _no_base(fault: NodeFault) -> Exception:
    return CannotOverlay(fault.message) if fault.kind in _NO_BASE else fault


def _put_together(build: Build, base: Base, wheel: Path) -> Ready:
    """Errors: CannotOverlay, NodeFault, Stopped."""
    base_tree = wheel.with_name("tree.tar")
    try:
        build.site.sources.archive(base.source, base_tree, build.stop)
    except NodeFault as fault:
        raise _no_base(fault) from fault
    except FixupFails as error:
        raise CannotOverlay(str(error)) from error
    try:
        made = overlay(Inputs(wheel, base.source.sha, base_tree, build.tree), build.job.inputs)
    except OSError as error:
        raise fault_of(error, "putting a wheel together") from error
    build.stop.check()
    wheels.check_name(made.wheel.name, build.order.package)
    wheels.check(made.wheel)
    return Ready(made.wheel, "overlay", build.said(f"base: {wheel.name} of {base.source.sha}", str(made)))


def _by_command(build: Build, base: Base, job: Job, run: Run) -> Ready:
    """Errors: CannotOverlay, NoWheel, NodeFault."""
    run.check()
    with run.log.path.open("rb") as text:
        if observe.out_of_space(text):
            raise NodeFault("disk-full", "no space left on the node while building", "Free space in work_dir.")
        text.seek(0)
        lines = observe.last_lines(text, 1)
    if run.exit_status != 0:
        raise CannotOverlay(f"the overlay command {_end(run)}" + "".join(f": {line}" for line in lines))
    found = wheels.take(job.out / "wheels", build.job.inputs, build.order.package)
    append(run.log.path, f"firstbad: {found.name} made by the overlay command from the wheel of {base.source.sha}")
    path = keep_log(build.site.store, run.log.path, build.name)
    with run.log.path.open("rb") as text:
        log = contract.Log(path=path, bytes=run.log.bytes, cut=run.log.cut, last_lines=observe.last_lines(text, 50))
    return Ready(found, "overlay", log)


def _end(run: Run) -> str:
    if run.ran.out_of_memory:
        return "was killed for memory"
    if run.overdue or (run.inside is not None and run.inside.timed_out):
        return "took too long"
    signal = run.inside.signal if run.inside is not None else None
    return f"died of signal {signal}" if signal else f"ended with exit status {run.exit_status}"


def copy_in(job: Job, *files: Path) -> None:
    """What a second job of the same order reads. Errors: NodeFault."""
    for file in files:
        try:
            shutil.copyfile(file, job.inputs / file.name)
        except OSError as error:
            raise fault_of(error, f"copying {file.name}") from error
