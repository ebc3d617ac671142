"""The names of queues: they say which nodes may take what waits in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

#: The queue of builds; every other one is of probes.
BUILD = "build"
#: Of probes without GPUs, which any node that runs probes may take.
CPU = "cpu"
#: Of what only nodes with certain labels or models may take; which one is decided when it is sent.
PICKY = "with "
#: More characters stand in it as their digest.
LONGEST = 200
#: Of what one node alone may take.
NODE = "node."


def of_gpus(gpu_class: str) -> str:
    return f"gpu.{gpu_class}"


def picky(labels: Iterable[str], models: Iterable[str], gpus: int, on: str) -> str:
    """Of all that need just these, by which it is told whether a node fits."""
    named = (("labels", ", ".join(sorted(labels))), ("models", ", ".join(sorted(models))))
    needs = "; ".join((*([f"{gpus} GPUs"] if gpus else []), *(f"{what} {names}" for what, names in named if names)))
    return f"{PICKY}{short(needs)} on {on}"


def short(text: str) -> str:
    """It, or its digest where it is too long for an index: PostgreSQL refuses what is."""
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def of_node(name: str) -> str:
    return f"{NODE}{name}"


def node_of(queue: str) -> str | None:
    """The one node that serves the queue; None when others may."""
    return queue.removeprefix(NODE) if queue.startswith(NODE) else None
