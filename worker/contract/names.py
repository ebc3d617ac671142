"""What both sides call things: tasks, queues, and the keys in Redis that tell where an attempt stands."""

from __future__ import annotations

import re
from enum import StrEnum


class Task(StrEnum):
    """Celery task names. The first three run on workers, the others on the control worker."""

    BUILD = "firstbad.build"
    PROBE = "firstbad.probe"
    SURVEY = "firstbad.survey"
    PREPARE = "firstbad.prepare"
    STARTED = "firstbad.started"
    BUILT = "firstbad.built"
    PROBED = "firstbad.probed"
    SURVEYED = "firstbad.surveyed"
    NODE = "firstbad.node"


class Queue(StrEnum):
    """Beside these, each GPU model has one (`gpu_queue`), and each node its own (`node_queue`)."""

    CONTROL = "control"
    BUILD = "build"
    PROBE = "probe.cpu"


def gpu_class(model: str) -> str:
    """Of a GPU's name as its driver gives it: "NVIDIA H100 80GB HBM3" is "nvidia-h100-80gb-hbm3"."""
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")


def gpu_queue(gpu_class: str) -> str:
    """Probes that want GPUs of this class."""
    return f"probe.gpu.{gpu_class}"


def node_queue(node: str) -> str:
    """Probes for this node alone."""
    return f"node.{node}"


#: Priorities of the broker: 0 goes first. A build that is made ahead waits for all that somebody waits for.
NOW, AHEAD = 0, 9


#: Seconds after which a lease that was not renewed is gone, and how often a worker renews it.
LEASE_S = 30
RENEW_S = 5


def lease_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, kept alive by the worker for as long as it works on that attempt."""
    return f"firstbad:lease:{kind}:{id}:{attempt}"


def sent_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set with the order and removed when a worker takes it: while it lives the order is under way."""
    return f"firstbad:sent:{kind}:{id}:{attempt}"


def cancel_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set by the service; a worker that sees it stops that attempt and reports nothing."""
    return f"firstbad:cancel:{kind}:{id}:{attempt}"


def taken_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set once by the worker that takes an attempt, so that a second delivery of the order is dropped."""
    return f"firstbad:taken:{kind}:{id}:{attempt}"


def done_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set by the service once it has dealt with the result of that attempt, also where it does not count:
    a worker keeps a result, and sends it again, until it sees this."""
    return f"firstbad:done:{kind}:{id}:{attempt}"


def out_key(node: str) -> str:
    """Redis key, set by the service while a node is taken out: it takes no probe then."""
    return f"firstbad:out:{node}"


#: Redis key, kept alive by the control worker: the version of the contract that its orders have.
SERVICE_KEY = "firstbad:service"


def watched_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, kept alive by the service for as long as somebody watches the log of that attempt.

    It holds who came last: for each newcomer the end of what was published is published once more.
    """
    return f"firstbad:watched:{kind}:{id}:{attempt}"


def live_channel(kind: str, id: str, attempt: int) -> str:
    """Redis channel to which the worker publishes a watched log, in `Piece`s, at first the end of what there is."""
    return f"firstbad:live:{kind}:{id}:{attempt}"
