"""The CPUs, and the NUMA node, that an order binds its run to."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from worker.errors import NodeFault

NODES = Path("/sys/devices/system/node")
#: No kernel counts further.
MOST = 8192
_LIST = re.compile(r"\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*")
ADVICE = "Another node may have them: name the node, or CPUs that this one has, in `resources`."


@dataclass(frozen=True)
class Pinned:
    """`memory`: the NUMA node whose memory alone is used, None for any. `numa`: whether one was asked for."""

    cpus: frozenset[int]
    memory: int | None = None
    numa: bool = False

    @property
    def listed(self) -> str:
        return listed(self.cpus)


def pinned(cpuset: str | None, numa: int | None, nodes: Path = NODES) -> Pinned | None:
    """None when the order binds it to nothing. Errors: NodeFault, when this node has no such CPUs."""
    if cpuset is None and numa is None:
        return None
    there = usable()
    wanted = parsed(cpuset) if cpuset is not None else there
    if not wanted <= there:
        what = "CPU {} is" if len(wanted - there) == 1 else "CPUs {} are"
        missing = what.format(listed(wanted - there))
        raise NodeFault("cpus", f"{missing} asked for, this node has {listed(there)}", ADVICE)
    if numa is None:
        return Pinned(wanted)
    local = _of_node(numa, nodes) & there
    if cpuset is not None and not wanted <= local:
        message = f"CPUs {listed(wanted - local)} are none of NUMA node {numa}, which has {listed(local) or 'none'}"
        raise NodeFault("cpus", message, ADVICE)
    if not local:
        raise NodeFault("cpus", f"NUMA node {numa} has no CPUs that a run may use", ADVICE)
    has_memory = numa in _parsed(_read(nodes / "has_memory"))
    return Pinned(wanted & local, numa if has_memory else None, numa=True)


def _of_node(numa: int, nodes: Path) -> frozenset[int]:
    path = nodes / f"node{numa}" / "cpulist"
    if not path.exists():
        there = listed(_parsed(_read(nodes / "online"))) or "none"
        raise NodeFault("cpus", f"NUMA node {numa} is asked for, this node has {there}", ADVICE)
    return _parsed(_read(path))


def bound(pinned: Pinned | None, *, memory: bool) -> dict[str, str]:
    """What an outcome says of the NUMA node. `memory`: whether the run was bound to it too."""
    if pinned is None or not pinned.numa:
        return {}
    return {"numa": "CPUs and memory" if memory and pinned.memory is not None else "CPUs only"}


def parsed(text: str) -> frozenset[int]:
    """Of "0-3,8". Errors: NodeFault."""
    found = _parsed(text)
    if not found:
        raise NodeFault("cpus", f"{text[:100]!r} names no CPUs", "Write them like 0-3,8.")
    return found


def _parsed(text: str) -> frozenset[int]:
    """Empty for what is no list of CPUs."""
    text = text.strip()
    if not _LIST.fullmatch(text):
        return frozenset()
    ends = ((int(first), int(last or first)) for first, _, last in (part.partition("-") for part in text.split(",")))
    return frozenset(number for first, last in ends for number in range(first, min(last, MOST) + 1))


def listed(cpus: Collection[int]) -> str:
    """As the kernel writes them: "0-3,8"."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _stretches(sorted(cpus)))


def _stretches(cpus: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for cpu in cpus:
        if first is None or last is None or cpu != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = cpu
        last = cpu
    if first is not None and last is not None:
        yield first, last


def usable() -> frozenset[int]:
    """All that the kernel lets a process of this node have, also when the worker itself was bound to few.

    Errors: NodeFault, where processes cannot be bound to CPUs.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise NodeFault("cpus", "this system does not bind processes to CPUs", "Leave `cpuset` and `numa` out.")
    found: set[int] = set()

    def ask() -> None:
        # Of this thread alone, which is over then.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, range(MOST))
        found.update(os.sched_getaffinity(0))

    thread = threading.Thread(target=ask, name="cpus")
    thread.start()
    thread.join()
    return frozenset(found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
