"""What can go wrong on a node, as exceptions that the pipeline turns into faults."""

from __future__ import annotations

import errno


class NodeFault(Exception):
    """What the node or we did wrong, never held against a commit. `kind` is a slug, `advice` is for an operator."""

    def __init__(self, kind: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.advice = kind, message, advice


class Stopped(Exception):
    """The run was ended from outside: cancelled by the service, or the worker stops."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FixupFails(Exception):
    """A fix-up cannot be made to the commit: the commit cannot be tried. `said`: git's words."""

    def __init__(self, name: str, said: str) -> None:
        lines = [line for line in said.splitlines() if line.strip()] or ["git does not say why"]
        first = next((line for line in lines if line.startswith(("error:", "fatal:"))), lines[0])
        super().__init__(f"{name} does not apply: {first.removeprefix('error: ').removeprefix('fatal: ')}"[:2000])
        self.name, self.said = name, said


def fault_of(error: OSError, doing: str) -> NodeFault:
    """An operating system's error of our own work, such as a full disk, as a fault."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NodeFault(
            "disk-full", f"no space left on the node while {doing}: {error}", "Free space, or move work_dir."
        )
    return NodeFault("node-io", f"the node failed while {doing}: {error}", "Look at the node's disk and its rights.")
