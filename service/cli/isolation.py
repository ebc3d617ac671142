"""What the nodes say that their sandboxes do not keep apart, for those who run code there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from service.cli import screen
from service.doors.api.views import NodeView

#: By the names that workers give (docs/worker.md), what a run can get at, or take all of.
OPEN = {
    "pid": "the node's processes",
    "net": "its network",
    "mount": "its files",
    "ipc": "its shared memory segments",
    "uts": "its host name",
    "user": "what its user may do",
    "metadata": "the cloud's metadata service",
    "gpus": "other GPUs",
    "pids": "any number of processes",
    "memory": "all memory",
    "cpus": "all processors",
    "shm": "its /dev/shm",
}


def told(nodes: Collection[NodeView], kind: str, *, online: bool = False) -> Iterator[str]:
    """A sentence for nodes that are alike. `kind`: of the sandbox; `online`: a run shares the network it is given."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in nodes:
        if node.state == "alive" and "run" in node.roles and f"{kind}.not_isolated" in node.facts:
            alike[_missing(node.facts[f"{kind}.not_isolated"], online and kind == "process")].append(node.name)
    for missing, names in alike.items():
        if missing:
            where = ", ".join(map(screen.clean, sorted(names)))
            yield f"the {kind} sandbox of {where} does not keep runs from {', '.join(missing)}"


def broken(nodes: Collection[NodeView]) -> Iterator[str]:
    for node in nodes:
        for kind in ("docker", "process"):
            if fault := node.facts.get(f"{kind}.fault"):
                yield f"the {kind} sandbox of {screen.clean(node.name)} does not work: {screen.first_line(fault)}"
        for what in ("version", "store"):
            if fault := node.facts.get(f"{what}.fault"):
                yield f"{screen.clean(node.name)}: {screen.first_line(fault)}"


def _missing(names: str, online: bool) -> tuple[str, ...]:
    found = [name for name in names.split(",") if name != "none"]
    if online and "net" not in found:
        found.append("net")
    return tuple(OPEN.get(name, screen.clean(name)) for name in found)
