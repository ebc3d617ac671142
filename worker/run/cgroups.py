"""Limits on processes, memory and processors by control groups, where the worker may make them (as root, v1 and v2),
and the processors that a run is bound to."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from worker.run.processors import Pinned

ROOT = Path("/sys/fs/cgroup")
PREFIX = "firstbad-"
CONTROLLERS = ("pids", "memory", "cpu", "cpuset")
#: Of a limit on processors: the time that it counts for, and the least of it that the kernel takes.
PERIOD_US, LEAST_US = 100_000, 1000
#: What memory may be used at all, in version 1 and 2.
_MEMORY = ("cpuset.effective_mems", "cpuset.mems.effective")


@dataclass(frozen=True)
class Group:
    """A folder for each controller (version 1), or the same folder for all (version 2)."""

    folders: dict[str, Path]
    #: Whether it is bound to what was asked for: CPUs, and the memory of a NUMA node.
    binds: bool = False

    @property
    def entries(self) -> list[str]:
        """The files into which a process writes its id to join. Where each controller has a folder of its own, that of
        CPUs is joined only to be bound: it takes the kernel some time."""
        joined = {name: folder for name, folder in self.folders.items() if name != "cpuset" or self.binds}
        return sorted({str(folder / "cgroup.procs") for folder in joined.values()})

    def limit(self, pids: int, memory_bytes: int | None, cpus: float | None) -> None:
        """Errors: OSError."""
        if "pids" in self.folders:
            (self.folders["pids"] / "pids.max").write_text(str(pids))
        if "memory" in self.folders:
            self._limit_memory(self.folders["memory"], memory_bytes)
        if "cpu" in self.folders:
            self._limit_cpus(self.folders["cpu"], cpus)

    @staticmethod
    def _limit_cpus(folder: Path, most: float | None) -> None:
        quota = None if most is None else max(int(most * PERIOD_US), LEAST_US)
        if (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD_US}")
            return
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    @staticmethod
    def _limit_memory(folder: Path, most: int | None) -> None:
        if (folder / "memory.max").exists():
            (folder / "memory.max").write_text("max" if most is None else str(most))
            if (folder / "memory.swap.max").exists():
                (folder / "memory.swap.max").write_text("max" if most is None else "0")
            return
        # The limit with swap may never be below the one without.
        with_swap, without = folder / "memory.memsw.limit_in_bytes", folder / "memory.limit_in_bytes"
        if with_swap.exists():
            with_swap.write_text("-1")
        without.write_text("-1" if most is None else str(most))
        if with_swap.exists() and most is not None:
            with_swap.write_text(str(most))

    def bound(self, pinned: Pinned | None) -> Group:
        """The same, bound; not bound to anything where that cannot be done."""
        folder = self.folders.get("cpuset")
        if folder is None:
            return self
        own = (folder / "cgroup.controllers").exists()  # version 2, in which all limits are of one folder
        try:
            if pinned is not None:
                (folder / "cpuset.cpus").write_text(pinned.listed)
                mems = str(pinned.memory) if pinned.memory is not None else _read(folder.parent / _MEMORY[own])
                (folder / "cpuset.mems").write_text(mems)
            elif own:
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (folder / name).write_text("\n")
        except OSError:
            return self
        return replace(self, binds=pinned is not None)

    def kills(self) -> int:
        """How many processes were killed for memory in it so far."""
        folder = self.folders.get("memory")
        for name in ("memory.events", "memory.oom_control"):
            for line in _read(folder / name).splitlines() if folder is not None else ():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def kill(self) -> None:
        """Ends what is still in it: where there is no PID namespace, what outlived its supervisor."""
        for _ in range(100):
            left = [process for process in map(_process, self._pids()) if process is not None]
            if not left:
                return
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=1.0)

    def _pids(self) -> set[int]:
        entries = {folder / "cgroup.procs" for folder in self.folders.values()}
        return {int(pid) for entry in entries for pid in _read(entry).split()}

    def remove(self) -> None:
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


class Groups:
    """Groups are used again and again, since removing one takes the kernel longer than a short run.

    `worker`: the name by which they are found when it was killed.
    """

    def __init__(self, worker: str) -> None:
        self._prefix = f"{PREFIX}{worker}-"
        self.parents = parents()
        self._free: list[Group] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def one(
        self, pids: int, memory_bytes: int | None, cpus: float | None, pinned: Pinned | None = None
    ) -> Iterator[Group | None]:
        """A group for one run, that nothing else is in; None where none can be made."""
        group = self._take()
        try:
            if group is not None:
                group.limit(pids, memory_bytes, cpus)
                group = group.bound(pinned)
        except OSError:
            group = None
        try:
            yield group
        finally:
            if group is not None:
                group.kill()
                with self._lock:
                    self._free.append(group)

    def _take(self) -> Group | None:
        with self._lock:
            if self._free:
                return _there(self._free.pop())
            name = f"{self._prefix}{next(self._numbers)}"
        folders: dict[str, Path] = {}
        try:
            for controller, parent in self.parents.items():
                (parent / name).mkdir(exist_ok=True)
                folders[controller] = parent / name
        except OSError:
            Group(folders).remove()
            return None
        return Group(folders) if folders else None

    def remove_leftovers(self) -> None:
        """Removes the groups that this worker left; what is in use cannot be removed, and stays."""
        for parent in set(self.parents.values()):
            for folder in parent.glob(f"{self._prefix}*"):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def close(self) -> None:
        with self._lock:
            while self._free:
                self._free.pop().remove()


def remove_forgotten(older_s: float, prefix: str = PREFIX) -> None:
    """Removes what workers left that were killed and never came back: empty groups that nobody has touched for so long.

    Another worker of this node may still count with one; it makes it again.
    """
    for parent in set(parents().values()):
        for folder in parent.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > older_s and not _read(folder / "cgroup.procs").strip():
                    folder.rmdir()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _there(group: Group) -> Group | None:
    """Made again where somebody has removed it meanwhile, as what nobody seemed to use."""
    try:
        for folder in set(group.folders.values()):
            folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return group


def _process(pid: int) -> psutil.Process | None:
    """None when it is gone, or only waits for its parent to notice."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def parents() -> dict[str, Path]:
    """Where groups can be made, by controller; empty where they cannot."""
    if os.geteuid() != 0:
        return {}
    offered = _read(ROOT / "cgroup.subtree_control").split()
    if "memory" in offered:
        return {name: ROOT for name in CONTROLLERS if name in offered and os.access(ROOT / "cgroup.procs", os.W_OK)}
    lines = (line.split(":", 2)[1:] for line in _read(Path("/proc/self/cgroup")).splitlines())
    own = {name: path for names, path in lines for name in names.split(",")}
    found = {name: ROOT / name / own.get(name, "/").lstrip("/") for name in CONTROLLERS}
    return {name: path for name, path in found.items() if os.access(path / "cgroup.procs", os.W_OK)}
