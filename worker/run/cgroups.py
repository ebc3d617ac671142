"""Limits on processes and memory by control groups, where the worker may make them (as root, versions 1 and 2)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "firstbad-"


@dataclass(frozen=True)
class Group:
    """One job's group: a folder for each controller (version 1), or one folder for both (version 2)."""

    folders: dict[str, Path]

    @property
    def entries(self) -> list[str]:
        return sorted({str(folder / "cgroup.procs") for folder in self.folders.values()})

    def out_of_memory(self) -> bool:
        folder = self.folders.get("memory")
        if folder is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            for line in _read(folder / name).splitlines():
                if line.startswith("oom_kill ") and line.split()[1] != "0":
                    return True
        return False

    def remove(self) -> None:
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def parents() -> dict[str, Path]:
    """Where groups can be made, by controller; empty where they cannot."""
    if os.geteuid() != 0:
        return {}
    if "memory" in _read(ROOT / "cgroup.subtree_control").split():
        return dict.fromkeys(("pids", "memory"), ROOT)
    own = dict(line.split(":", 2)[1:] for line in _read(Path("/proc/self/cgroup")).splitlines())
    found = {name: ROOT / name / own.get(name, "/").lstrip("/") for name in ("pids", "memory")}
    return {name: path for name, path in found.items() if os.access(path / "cgroup.procs", os.W_OK)}


def make(where: dict[str, Path], name: str, *, pids: int, memory_bytes: int | None) -> Group | None:
    """A group for one job; None where none can be made."""
    folders: dict[str, Path] = {}
    try:
        for controller, parent in where.items():
            folder = parent / f"{PREFIX}{name}"
            folder.mkdir(exist_ok=True)
            folders[controller] = folder
        if "pids" in folders:
            (folders["pids"] / "pids.max").write_text(str(pids))
        if "memory" in folders and memory_bytes is not None:
            v2 = (folders["memory"] / "memory.max").exists()
            (folders["memory"] / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text(str(memory_bytes))
            swap = folders["memory"] / ("memory.swap.max" if v2 else "memory.memsw.limit_in_bytes")
            if swap.exists():
                swap.write_text("0" if v2 else str(memory_bytes))
    except OSError:
        Group(folders).remove()
        return None
    return Group(folders) if folders else None


def remove_leftovers(where: dict[str, Path]) -> None:
    """Removes empty groups of jobs that a killed worker left; those in use cannot be removed, and stay."""
    for parent in set(where.values()):
        for folder in parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                folder.rmdir()
