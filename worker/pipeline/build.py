"""fetch -> build: a commit's wheel, in the store."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

from worker import contract, observe
from worker.build import wheels
from worker.contract import BuildOrder
from worker.errors import FixupFails, NodeFault
from worker.pipeline.fixups import refused
from worker.pipeline.runs import BUILD_LINES, Run, Site, Task, Wanted, cache, execute, outcome
from worker.run.logs import append
from worker.run.sandbox import Sandbox
from worker.run.stop import Stop


def build(site: Site, order: BuildOrder, stop: Stop) -> dict[str, Any]:
    """What a BuildResult says besides whose it is. Errors: NodeFault, Stopped."""
    began, sandbox = time.time(), site.sandbox(order.sandbox)
    with site.job(f"build-{order.key}.{order.attempt}", sandbox) as job:
        path = f"logs/{order.key}.{order.attempt}.log"
        try:
            site.sources.archive(order.source, job.inputs / "tree.tar", stop)
        except FixupFails as error:
            unfit = refused(site, job, error, path, began)
            return {"failure": unfit, "log": unfit.log}
        labels = {"kind": "build", "build": order.key}
        task = Task(order, {"build": order.command}, labels, began, _cache(site, order, sandbox))
        run = execute(site, job, sandbox, task, stop)
        wanted = Wanted(path, "build", lines=BUILD_LINES)
        if run.exit_status == 0:
            try:
                found = wheels.take(job.out / "wheels", job.inputs)
            except wheels.NoWheel as none:
                append(run.log.path, f"firstbad: {none}")
            else:
                return {"wheel": keep(site, order, found), "log": outcome(site, run, wanted).log}
        _check(run, order.limits.timeout_s)
        failure = outcome(site, run, wanted)
        return {"failure": failure, "log": failure.log}


def keep(site: Site, order: BuildOrder, wheel: Path) -> contract.Wheel:
    path = f"wheels/{order.key}/{order.attempt}/{wheel.name}"
    size = wheel.stat().st_size
    return contract.Wheel(name=wheel.name, path=path, bytes=size, sha256=site.store.put(wheel, path))


def _cache(site: Site, order: BuildOrder, sandbox: Sandbox) -> Path:
    """One installer's cache for a repository's builds by the same command; what another runs cannot prepare it."""
    same = [order.source.repo, order.sandbox.model_dump(), order.command, order.env]
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    return cache(site, digest[:24], sandbox)


def _check(run: Run, timeout_s: float) -> None:
    """Errors: NodeFault, when it was the node that kept a failed build from ending well."""
    with run.log.path.open("rb") as text:
        if observe.out_of_space(text):
            raise NodeFault("disk-full", "no space left on the node while building", "Free space in work_dir.")
    if run.ran.out_of_memory:
        raise NodeFault("out-of-memory", "the build was killed for memory", "Allow it more memory, or fewer jobs.")
    if run.overdue or (run.inside is not None and run.inside.timed_out):
        message = f"the build took longer than {timeout_s:.0f} s"
        raise NodeFault("build-timeout", message, "Allow it more time, or use a faster node.")
