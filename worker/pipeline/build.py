"""fetch -> build: a commit's wheel, in the store, by the cheapest of the ways that the order names."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from worker import contract, observe
from worker.build import wheels
from worker.contract import BuildOrder
from worker.errors import FixupFails, NodeFault
from worker.pipeline.fixups import refused
from worker.pipeline.outcomes import BUILD_LINES, Wanted, outcome
from worker.pipeline.ready import Build, Overlaying, copy_in, from_base, from_indexes
from worker.pipeline.runs import Run, Site, Task, execute, shared_env
from worker.run.job import Job
from worker.run.logs import append
from worker.run.sandbox import Sandbox
from worker.run.stop import Stop
from worker.spans import part


def build(site: Site, order: BuildOrder, stop: Stop) -> dict[str, Any]:
    """What a BuildResult says besides whose it is. Errors: NodeFault, Stopped."""
    began, sandbox = time.time(), site.sandbox(order.sandbox)
    with site.job(f"build-{order.key}.{order.attempt}", sandbox) as job:
        name = f"{order.key}.{order.attempt}"
        try:
            with part("fetch"):
                site.sources.archive(order.source, job.inputs / "tree.tar", stop)
        except FixupFails as error:
            unfit = refused(site, job, error, name, began)
            return {"failure": unfit, "log": unfit.log}
        under_way = Build(site, order, job, stop)
        with part("ready-made"):
            ready = from_indexes(under_way) or from_base(under_way, _overlaying(under_way, sandbox, began))
        if ready is None:
            made = _built(site, order, job, _run(site, order, job, sandbox, began, stop), name)
        else:
            made = {"wheel": keep(site, order, ready.wheel), "log": ready.log, "origin": ready.origin}
        return {**made, "notes": tuple(under_way.notes)}


def _run(site: Site, order: BuildOrder, job: Job, sandbox: Sandbox, began: float, stop: Stop) -> Run:
    """The project's own way. What could not be stored afterwards is not begun."""
    site.store.check()
    work = {"build": order.command, "failure": order.failure}
    task = Task(order, work, _labels(order), began, _cache(site, order, order.command))
    return execute(site, job, sandbox, task, stop)


def _overlaying(under_way: Build, sandbox: Sandbox, began: float) -> Overlaying:
    """The project's own way to make a wheel of another one, in a job of its own: a build may follow."""
    site, order = under_way.site, under_way.order

    @contextlib.contextmanager
    def run(command: str, wheel: Path) -> Iterator[tuple[Job, Run]]:
        with site.job(f"build-{order.key}.{order.attempt}.overlay", sandbox) as job:
            copy_in(job, under_way.tree, wheel)
            env = {"FIRSTBAD_BASE": f"{sandbox.place(job)}/in/{wheel.name}"}
            shared = _cache(site, order, command)
            task = Task(order, {"build": command}, _labels(order), began, shared, env=env)
            yield job, execute(site, job, sandbox, task, under_way.stop)

    return run


def _built(site: Site, order: BuildOrder, job: Job, run: Run, name: str) -> dict[str, Any]:
    wanted = Wanted(name, "build", order.failure, BUILD_LINES)
    if run.exit_status == 0:
        try:
            found = wheels.take(job.out / "wheels", job.inputs, order.package)
        except wheels.NoWheel as none:
            append(run.log.path, f"firstbad: {none}")
        else:
            return {"wheel": keep(site, order, found), "log": outcome(site, run, wanted).log, "origin": "built"}
    _check(run, order.limits.timeout_s)
    wanted = replace(wanted, project=order.project)
    failure = outcome(site, run, wanted).model_copy(update=_said(run))
    return {"failure": failure, "log": failure.log}


def _labels(order: BuildOrder) -> dict[str, str]:
    return {"kind": "build", "build": order.key}


def keep(site: Site, order: BuildOrder, wheel: Path) -> contract.Wheel:
    path = f"wheels/{order.key}/{order.attempt}/{wheel.name}"
    size = wheel.stat().st_size
    with part("store"):
        digest = site.store.put(wheel, path)
    return contract.Wheel(name=wheel.name, path=path, bytes=size, sha256=digest)


def _cache(site: Site, order: BuildOrder, command: str) -> Path:
    """One installer's cache for a repository's builds by the same command; what another runs cannot prepare it.

    Fix-ups are part of it: a request brings them, and their code must not meet the builds of other requests.
    """
    fixups = [fixup.model_dump() for fixup in order.source.fixups]
    same = [order.source.repo, order.sandbox.model_dump(), command, shared_env(order), fixups]
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    return site.caches.path(digest[:24])


def _check(run: Run, timeout_s: float) -> None:
    """Errors: NodeFault, when it was the node that kept a failed build from ending well."""
    with run.log.path.open("rb") as text:
        if observe.out_of_space(text):
            raise NodeFault("disk-full", "no space left on the node while building", "Free space in work_dir.")
        text.seek(0)
        slow_cache = observe.first_with(text, "sccache: error: Timed out waiting for server")
        text.seek(0)
        away = observe.unreachable(text)
    if run.ran.out_of_memory:
        raise NodeFault("out-of-memory", "the build was killed for memory", "Allow it more memory, or fewer jobs.")
    if run.overdue or (run.inside is not None and run.inside.timed_out):
        message = f"the build took longer than {timeout_s:.0f} s"
        raise NodeFault("build-timeout", message, "Allow it more time, or use a faster node.")
    if slow_cache is not None:
        raise NodeFault("compiler-cache", "sccache did not start in its time", "The node may be too busy.")
    if away is not None:
        message = f"the build could not reach what it needs: {away}"
        raise NodeFault("registry", message, "See whether it is up, and whether the recipe's build_network allows it.")


def _said(run: Run) -> dict[str, Any]:
    """What is wrong, by whoever says it first, and whether that is a compiler."""
    with run.log.path.open("rb") as text:
        first = observe.first_error(text)
    return {"first_error": first, "code_refused": first is not None and observe.of_code([first.encode()])}
