"""What a wheel needs besides itself: from an environment that is shared, or from the sandbox as it is."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from worker import observe
from worker.build import environments
from worker.build.environments import Wanted as Environment
from worker.contract import Dependencies, Outcome, Phase, ProbeOrder
from worker.errors import NodeFault
from worker.observe.installs import cause_of
from worker.pipeline import runs
from worker.pipeline.outcomes import Wanted, outcome
from worker.pipeline.runs import Run, Site, Task, execute
from worker.run.job import Job
from worker.run.sandbox import Sandbox
from worker.run.stop import Stop
from worker.spans import part

ADVICE = {
    "registry": "Look at the package index and at the node's network.",
    "no-upload-dates": "This index tells no dates: submit with `deps: {as_of: today}`.",
    "constraints": "Correct `deps: constraints` of the recipe or the request.",
}
#: Variables of installers: where one names a commit, as an index of its own does, other packages come from it.
INSTALLERS = ("UV_", "PIP_")


class NotInstalled(Exception):
    """What the commit's wheel needs cannot be had: that is the outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.exit_status)
        self.outcome = outcome


@dataclass(frozen=True)
class Supply:
    """Where dependencies come from. `work`: what the install phase is told. `phases`: what it took so far."""

    folder: Path | None = None
    work: dict[str, Any] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()

    @property
    def key(self) -> str | None:
        return self.folder.parent.name if self.folder is not None else None


@dataclass(frozen=True)
class Probe:
    """One that is about to run."""

    site: Site
    order: ProbeOrder
    sandbox: Sandbox
    job: Job
    began: float


@contextlib.contextmanager
def supplied(probe: Probe, wheel: Path | None, stop: Stop) -> Iterator[Supply]:
    """Errors: NodeFault, Stopped, NotInstalled."""
    order = probe.order
    needed = environments.requirements(wheel, order.sandbox.python) if wheel is not None else ()
    wanted = order.dependencies
    if needed is None or not needed:
        yield Supply(work={"resolve": needed is None})
    elif wanted is None or wanted.network == "none":
        # An installer that fetches does so by itself. One that does not need not be asked: uv looks only at the new
        # virtual environment, not at what the sandbox has below it.
        online = wanted is None and order.sandbox.network != "none"
        names = sorted({canonicalize_name(each.name) for each in needed})
        yield Supply(work={"resolve": online, "requires": [] if online else names})
    else:
        at = time.time() - probe.began

        def prepare(folder: Path) -> None:
            _prepare(probe, wanted, needed, folder, stop)

        with contextlib.ExitStack() as stack:
            with part("environment"):
                key = _key(probe, wanted, needed, stop)
                folder = stack.enter_context(probe.site.environments.using(key, prepare, stop))
            spent = Phase(name="environment", at_s=at, seconds=time.time() - probe.began - at)
            yield Supply(folder, {"resolve": False, "joined": True}, (spent,))


def _key(probe: Probe, wanted: Dependencies, needed: tuple[Requirement, ...], stop: Stop) -> str:
    """Errors: NodeFault, Stopped."""
    order = probe.order
    try:
        datetime.fromisoformat(wanted.as_of or "2000-01-01")
    except ValueError as error:
        raise NodeFault("order", f"dependencies as of {wanted.as_of!r}: {error}", "Give a date and time.") from error
    return Environment(
        repo=order.source.repo,
        stands_on=f"{probe.sandbox.kind} {probe.sandbox.stands_on(order.sandbox.image, stop)} {order.sandbox.python}",
        machine=platform.machine(),
        requirements=tuple(map(str, needed)),
        as_of=wanted.as_of or f"{datetime.now(UTC):%Y-%m-%d}, as it is then",
        constraints=wanted.constraints,
        network=wanted.network,
        env={**probe.site.passed_env, **runs.shared_env(order, INSTALLERS)},
    ).key


def _prepare(probe: Probe, wanted: Dependencies, needed: tuple[Requirement, ...], folder: Path, stop: Stop) -> None:
    """Errors: NodeFault, Stopped, NotInstalled, OSError."""
    site, sandbox = probe.site, probe.sandbox
    # As the probe runs, but in the network and in the time that dependencies have.
    there = probe.order.sandbox.model_copy(update={"network": wanted.network})
    limits = probe.order.limits.model_copy(update={"timeout_s": site.environments.timeout_s})
    order = probe.order.model_copy(update={"sandbox": there, "limits": limits})
    if sandbox.uid is not None:
        os.chown(folder, sandbox.uid, sandbox.uid)
    with site.job(f"environment-{uuid.uuid4().hex}", sandbox) as job:
        (job.inputs / "requirements.txt").write_text("".join(f"{each}\n" for each in needed), encoding="utf-8")
        if wanted.constraints.strip():
            (job.inputs / "constraints.txt").write_text(wanted.constraints, encoding="utf-8")
        labels = {"kind": "environment", "bisection": order.bisection, "probe": order.probe}
        began = time.time()
        work = {"environment": {"as_of": wanted.as_of}}
        cache = _cache(site, order)
        task = Task(order, work, labels, began, cache=cache, environment=folder, prepares=True)
        run = execute(site, job, sandbox, task, stop)
        _check(probe, run)
        shutil.copyfile(run.log.path, folder.parent / "log")
    if sandbox.uid is not None:
        environments.seal(folder)


def _cache(site: Site, order: ProbeOrder) -> Path:
    """One installer's cache for a repository; what another's packages do when they are built cannot prepare it."""
    same = ["environment", order.source.repo, order.sandbox.model_dump(), runs.shared_env(order)]
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    return site.caches.path(digest[:24])


def _check(probe: Probe, run: Run) -> None:
    """Errors: NodeFault, NotInstalled."""
    if run.exit_status == 0:
        return
    site, order = probe.site, probe.order
    failed = outcome(site, run, Wanted(f"{order.probe}.{order.attempt}", "environment", project=order.project))
    if run.ran.out_of_memory:
        raise NodeFault("out-of-memory", "installing dependencies was killed for memory", "Allow the run more memory.")
    if failed.timed_out:
        message = f"installing dependencies took longer than {site.environments.timeout_s:.0f} s"
        raise NodeFault("registry", message, "Look at the index, or set FIRSTBAD_ENVIRONMENT_TIMEOUT_S of this node.")
    check_installer(run)
    before = run.began - probe.began
    phases = (
        Phase(name="fetch", at_s=0.0, seconds=before),
        Phase(name="environment", at_s=before, seconds=run.seconds),
    )
    raise NotInstalled(failed.model_copy(update={"ended_in": "install", "phases": phases}))


def check_installer(run: Run) -> None:
    """Errors: NodeFault, when by the installer's own words it was not the commit that kept it from ending well."""
    with run.log.path.open("rb") as text:
        if observe.out_of_space(text):
            message = "no space left on the node while dependencies were installed"
            raise NodeFault("disk-full", message, "Free space in work_dir, or keep fewer FIRSTBAD_ENVIRONMENTS.")
        text.seek(0)
        cause = cause_of(text)
    if cause is not None:
        message = f"the dependencies could not be installed: {cause.said}"
        raise NodeFault(cause.kind, message[:2000], ADVICE[cause.kind])
