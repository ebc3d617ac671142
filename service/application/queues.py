"""The names of queues: they say which nodes may take what waits in them."""

from __future__ import annotations

#: The queue of builds; every other one is of probes.
BUILD = "build"
#: Of probes without GPUs, which any node that runs probes may take.
CPU = "cpu"
#: Of what only nodes with certain labels or models may take; which one is decided when it is sent.
PICKY = "with "
#: Of what one node alone may take.
NODE = "node."


def of_gpus(gpu_class: str) -> str:
    return f"gpu.{gpu_class}"


def of_node(name: str) -> str:
    return f"{NODE}{name}"


def node_of(queue: str) -> str | None:
    """The one node that serves the queue; None when others may."""
    return queue.removeprefix(NODE) if queue.startswith(NODE) else None
