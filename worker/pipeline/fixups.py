"""A commit to which a fix-up cannot be made: the outcome that a run of it would have had."""

from __future__ import annotations

import time

from worker import contract, observe
from worker.contract import Outcome, Phase
from worker.errors import FixupFails, fault_of
from worker.pipeline.logs import keep_log
from worker.pipeline.runs import Site
from worker.run.job import Job
from worker.run.logs import append

LINES = 50


def refused(site: Site, job: Job, error: FixupFails, name: str, began: float) -> Outcome:
    """`name`: of the log. Errors: NodeFault."""
    log = job.root / "log"
    try:
        append(log, f"firstbad: {error}", *error.said.splitlines())
        size = log.stat().st_size
        with log.open("rb") as text:
            last_lines = observe.last_lines(text, LINES)
    except OSError as failed:
        raise fault_of(failed, "writing the log") from failed
    return Outcome(
        exit_status=1,
        ended_in="fix-up",
        first_error=observe.readable(str(error).encode("utf-8", "replace")),
        phases=(Phase(name="fetch", at_s=0.0, seconds=max(0.0, time.time() - began)),),
        log=contract.Log(path=keep_log(site.store, log, name), bytes=size, cut=False, last_lines=last_lines),
        environment={"node": site.node},
    )
