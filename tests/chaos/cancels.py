"""Small bisections beside the example: of many of them 200 are cancelled at random moments; and one that is slow."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from firstbad import Client, ProblemError
from tests.chaos.material import SMALL_BAD
from tests.chaos.stack import Stack, patiently

CANCELLED, KEPT = 200, 6
#: Submitted and neither cancelled nor kept, at any time.
MOST_WAITING = 20


@dataclass
class Small:
    """Ids of those that were cancelled, and of those that go on."""

    cancelled: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    too_late: list[str] = field(default_factory=list)


def cancels(stack: Stack, dice: random.Random, small: Small) -> str:
    """Submits and cancels at once, so that some are cancelled before they were prepared, and some while they run."""
    waiting: list[str] = []
    with stack.client() as client:
        while len(small.cancelled) < CANCELLED:
            script = f"sleep {dice.uniform(0.05, 0.5):.2f}"
            document = {**stack.material.small_request(script), "width": dice.choice((1, 2))}
            id = str(patiently(lambda: client.submit(document)).id)  # noqa: B023
            kept = len(small.kept) < KEPT and dice.random() < KEPT / CANCELLED
            (small.kept if kept else waiting).append(id)
            while len(waiting) > dice.randint(0, MOST_WAITING):
                _cancel(client, waiting.pop(dice.randrange(len(waiting))), small)
        for id in waiting:
            _cancel(client, id, small)
    return f"{len(small.cancelled)}; {len(small.too_late)} had ended, {len(small.kept)} were kept"


def broker(stack: Stack, dice: random.Random, small: Small) -> str:
    """Probes that take six times as long as the broker's time-out (tests/worker/impatient.py)."""
    ends = {"good": stack.material.small[SMALL_BAD - 1], "bad": stack.material.small[SMALL_BAD]}
    with stack.client() as client:
        document = {**stack.material.small_request("sleep 30"), **ends, "width": 2}
        small.kept.append(str(patiently(lambda: client.submit(document)).id))
    return "probes of 30 s"


def _cancel(client: Client, id: str, small: Small) -> None:
    try:
        patiently(lambda: client.cancel(id))
    except ProblemError:
        small.too_late.append(id)
    else:
        small.cancelled.append(id)
