"""What builds and runs find in a sandbox, so that all those of one bisection find the same."""

from __future__ import annotations

import platform
import uuid

from worker.contract import Builder, SurveyOrder
from worker.errors import NodeFault
from worker.pipeline.runs import Site
from worker.run import job as jobs
from worker.run.job import Errand, Job
from worker.run.sandbox import Ran, Sandbox
from worker.run.stop import Stop

TIMEOUT_S = 120.0
LOG_BYTES = 64 * 1024


def survey(site: Site, order: SurveyOrder, stop: Stop) -> Builder:
    """Errors: NodeFault, Stopped."""
    sandbox = site.sandbox(order.sandbox)
    version, image = sandbox.python, None
    if version is None:
        with site.job(f"survey-{uuid.uuid4().hex}", sandbox) as job:
            ran = _run(site, order, sandbox, job, stop)
            version = _python(job, ran)
        image = ran.facts.get("image_digest") or ran.facts.get("image_id")
    python = ".".join(version.split(".")[:2])
    wanted = order.sandbox.python
    if wanted is not None and wanted != python:
        message = f"this node has Python {python}, the bisection was begun with {wanted}"
        raise NodeFault("other-python", message, "Give it to a node with that version, or name an image.")
    return Builder(image=image, python=python, machine=platform.machine())


def _run(site: Site, order: SurveyOrder, sandbox: Sandbox, job: Job, stop: Stop) -> Ran:
    errand = Errand(
        order={"script": "true", "offline": True, "timeout_s": TIMEOUT_S, "log_cap_bytes": LOG_BYTES},
        timeout_s=TIMEOUT_S,
        image=order.sandbox.image,
        labels={"kind": "survey", "bisection": order.bisection, "attempt": str(order.attempt), "node": site.node},
    )
    with stop.apart() as own:
        ran = sandbox.run(job, errand, own)
    stop.check()
    return ran


def _python(job: Job, ran: Ran) -> str:
    """Errors: NodeFault, also for what is missing inside, as bash may be."""
    outcome = jobs.read_outcome(job) if ran.status == 0 else None
    if outcome is not None and outcome.fault is not None:
        told = outcome.fault
        raise NodeFault(told.get("kind", "sandbox")[:50], told.get("message", ""), told.get("advice", ""))
    if outcome is None or outcome.exit_status != 0:
        raise NodeFault("sandbox", f"nothing runs in the sandbox: {jobs.said(job)}", "See the node's log.")
    return outcome.python
