"""What finishing a probe needs, kept in its job folder: another worker process may have to."""

from __future__ import annotations

import os
from typing import Any

from pydantic import ValidationError

from worker.contract import Gpu, Outcome, Phase, ProbeOrder
from worker.contract.message import Message
from worker.errors import fault_of
from worker.run.job import Job

NAME = "kept.json"


class Kept(Message):
    """`began`: seconds of the epoch, when the order, or the control, was begun. `work`: of the supply.

    `before`: phases that were over by then. `environment`: the key of the one it uses. `facts`: seen before the run.
    `outcome`: of the reproduction, while the control runs. `leased_at`, `run_at`: of the GPUs and of this run, seconds
    of the epoch; `used_s`: of the GPUs before it. Secrets are named in the order, and nowhere else.
    """

    order: ProbeOrder
    began: float
    wheel: str | None = None
    work: dict[str, Any] = {}
    before: tuple[Phase, ...] = ()
    environment: str | None = None
    gpus: tuple[Gpu, ...] = ()
    facts: dict[str, str] = {}
    outcome: Outcome | None = None
    leased_at: float = 0.0
    run_at: float = 0.0
    used_s: float = 0.0


def keep(job: Job, kept: Kept) -> None:
    """For its owner alone, whole or not at all. Errors: NodeFault."""
    fresh = job.root / f"{NAME}.new"
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(kept.model_dump_json())
        fresh.rename(job.root / NAME)
    except OSError as error:
        raise fault_of(error, f"writing {fresh}") from error


def read(job: Job) -> Kept | None:
    """None when there is nothing that this worker understands."""
    try:
        return Kept.model_validate_json((job.root / NAME).read_bytes())
    except (OSError, ValidationError):
        return None
