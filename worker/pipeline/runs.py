"""What builds and probes have in common: a job folder, a run in a sandbox, its log and its facts."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from worker import contract, observe
from worker.build.caches import Caches
from worker.build.environments import Environments
from worker.build.source import Sources
from worker.build.store import Store
from worker.contract import BuildOrder, Phase, ProbeOrder
from worker.errors import NodeFault
from worker.gpus import Gpus
from worker.pipeline.beside import Beside, Running
from worker.run import job as jobs
from worker.run.bin import Bin
from worker.run.job import Errand, InsideOutcome, Job
from worker.run.logs import KeptLog, assemble
from worker.run.processors import pinned
from worker.run.sandbox import Left, Ran, Sandbox
from worker.run.secrets import picked
from worker.run.stop import OVERDUE, Stop
from worker.spans import past

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: The phases that the script or the check are.
SPEAKING = ("script", "check")


#: Lets people watch the log of a job for an order (its kind, id and attempt), of so many bytes at most, meanwhile.
Shown = Callable[[tuple[str, str, int], Job, int], contextlib.AbstractContextManager[None]]


def not_shown(key: tuple[str, str, int], job: Job, cap: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


@dataclass(frozen=True)
class Site:
    """What this node works with. `sandboxes`: by kind, those that are allowed.

    `passed_env`: variables of the node for runs with a network. `files`: those of the node that are shown to them.
    `compiler_cache`: the most that the compiler cache of one repository's builds may hold, as "5G". `secrets`: what
    orders may ask for by name, None where the node has no value for it.
    """

    node: str
    work_dir: Path
    store: Store
    sources: Sources
    sandboxes: Mapping[str, Sandbox]
    bin: Bin
    environments: Environments
    caches: Caches
    gpus: Gpus
    passed_env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    compiler_cache: str = "5G"
    secrets: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    shown: Shown = not_shown
    running: Running = field(default_factory=Running)

    def sandbox(self, wanted: contract.Sandbox) -> Sandbox:
        found = self.sandboxes.get(wanted.kind)
        if found is None:
            allowed = ", ".join(sorted(self.sandboxes)) or "none"
            message = f"the {wanted.kind} sandbox is not allowed on {self.node}, which has: {allowed}"
            raise NodeFault("sandbox-refused", message, "See FIRSTBAD_SANDBOXES of this node.")
        return found

    def secrets_of(self, order: BuildOrder | ProbeOrder) -> dict[str, str]:
        """Errors: NodeFault, when this node does not have what is asked for."""
        return picked(self.secrets, order.secrets) if isinstance(order, ProbeOrder) else {}

    def job(self, name: str, sandbox: Sandbox) -> contextlib.AbstractContextManager[Job]:
        return self.again(jobs.create(self.work_dir / "jobs", name, sandbox.uid))

    @contextlib.contextmanager
    def again(self, job: Job) -> Iterator[Job]:
        """One that is there already, also from a former life of this worker."""
        try:
            yield job
        finally:
            self.bin.throw(job.root)


@dataclass(frozen=True)
class Task:
    """One run that is asked for: the order it is for, and what is to be done inside."""

    order: BuildOrder | ProbeOrder
    work: dict[str, Any]
    labels: dict[str, str]
    began: float
    cache: Path | None = None
    environment: Path | None = None
    prepares: bool = False
    #: Beside the order's own.
    env: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[contract.Gpu, ...] = ()


def shared_env(order: BuildOrder | ProbeOrder, but: tuple[str, ...] = ()) -> dict[str, str]:
    """The order's variables as the recipe has them, so that what they prepare serves other commits too.

    `but`: beginnings of the names of variables by which each commit does get something else.
    """
    sha = order.source.sha
    return {name: value if name.startswith(but) else value.replace(sha, "{sha}") for name, value in order.env.items()}


def execute(site: Site, job: Job, sandbox: Sandbox, task: Task, stop: Stop) -> Run:
    """Errors: NodeFault, Stopped."""
    stop.check()
    held = site.caches.using(task.cache, sandbox.uid)
    with stop.apart() as own, held, _watchable(site, task.order, job), site.running.one() as beside:
        ran = sandbox.run(job, _errand(site, sandbox.place(job), task), own)
    return _over(job, task, _with(ran, beside), own)


def attach(site: Site, job: Job, sandbox: Sandbox, task: Task, left: Left, stop: Stop) -> Run:
    """The same for a run that has begun. Errors: NodeFault, Stopped."""
    with stop.apart() as own, _watchable(site, task.order, job), site.running.one() as beside:
        ran = sandbox.attach(left, job, _errand(site, sandbox.place(job), task), own)
    return _over(job, task, _with(ran, beside), own)


def _with(ran: Ran, beside: Beside) -> Ran:
    return replace(ran, facts={**ran.facts, "runs_beside": str(beside.most)})


def _watchable(site: Site, order: BuildOrder | ProbeOrder, job: Job) -> contextlib.AbstractContextManager[None]:
    kind, id = ("build", order.key) if isinstance(order, BuildOrder) else ("probe", order.probe)
    return site.shown((kind, id, order.attempt), job, order.limits.log_cap_bytes)


def _over(job: Job, task: Task, ran: Ran, stop: Stop) -> Run:
    if stop.reason != OVERDUE:
        stop.check()
    # Where what ran inside failed itself, the reproduction may have written an outcome in its place.
    inside = jobs.read_outcome(job) if ran.status == 0 else None
    for phase in inside.phases if inside is not None and not task.prepares else ():
        past(phase.name, (inside.began if inside is not None else 0.0) + phase.at_s, phase.seconds or 0.0)
    log = assemble(job, inside.bytes if inside else None, task.order.limits.log_cap_bytes)
    overdue = stop.reason == OVERDUE
    return Run(ran, inside, log, time.time() - task.began, task.began, overdue=overdue, said=jobs.said(job))


def _errand(site: Site, place: str, task: Task) -> Errand:
    order, limits = task.order, task.order.limits
    network = order.sandbox.network != "none"
    passed = site.passed_env if network else {}
    env = {**passed, "FIRSTBAD_COMMIT": order.source.sha, **_checked_env(order.env), **task.env}
    if "build" in task.work:
        env["FIRSTBAD_OUT"] = f"{place}/out/wheels"
    return Errand(
        order={
            **task.work,
            "python": order.sandbox.python,
            "offline": not network,
            "compiler_cache": {"size": site.compiler_cache, "own_path": "PATH" in order.env} if task.cache else None,
            "timeout_s": limits.timeout_s,
            "log_cap_bytes": limits.log_cap_bytes,
        },
        timeout_s=limits.timeout_s,
        image=order.sandbox.image,
        network=order.sandbox.network,
        memory_bytes=limits.memory_bytes,
        shm_bytes=limits.shm_bytes,
        cpus=limits.cpus,
        pinned=None if task.prepares else pinned(limits.cpuset, limits.numa),
        pids=limits.pids,
        env=env,
        labels={**task.labels, "attempt": str(order.attempt), "node": site.node},
        files=site.files,
        cache=task.cache,
        environment=task.environment,
        prepares=task.prepares,
        gpus=task.gpus,
        secrets={} if task.prepares else site.secrets_of(order),
        model_cache=order.model_cache if isinstance(order, ProbeOrder) and not task.prepares else "none",
    )


@dataclass(frozen=True)
class Run:
    """A run that is over: what the sandbox, what ran inside and the log say. `seconds` until then, since `began`."""

    ran: Ran
    inside: InsideOutcome | None
    log: KeptLog
    seconds: float
    began: float
    overdue: bool
    said: str

    @property
    def exit_status(self) -> int | None:
        return self.inside.exit_status if self.inside is not None and self.inside.fault is None else None

    def check(self) -> None:
        """Errors: NodeFault, when what was asked for did not come to its end, good or bad."""
        if self.inside is not None and self.inside.fault is not None:
            raise self.fault()
        if self.inside is None and not (self.overdue or self.ran.out_of_memory):
            raise NodeFault("sandbox", f"the sandbox ended before its work did: {self.said}", "See the node's log.")

    def phases(self) -> tuple[Phase, ...]:
        """With times since the order was taken; unpacking belongs to the fetch."""
        if self.inside is None:
            return ()
        shift = min(max(self.inside.began - self.began, 0.0), self.seconds)
        rest = [phase for phase in self.inside.phases if phase.name != "unpack"]
        fetched = shift + sum(phase.seconds or 0.0 for phase in self.inside.phases if phase.name == "unpack")
        run = [Phase(name=phase.name, at_s=shift + phase.at_s, seconds=phase.seconds or 0.0) for phase in rest]
        return (Phase(name="fetch", at_s=0.0, seconds=fetched), *run)

    def counted(self) -> tuple[float, float]:
        """Seconds of the epoch from which and to which the script, or the check, ran that counts; else the run."""
        for phase in reversed(self.inside.phases if self.inside is not None else ()):
            if self.inside is not None and phase.name in SPEAKING:
                begin = self.inside.began + phase.at_s
                return begin, begin + (phase.seconds or 0.0)
        return self.began, self.began + self.seconds

    def fault(self) -> NodeFault:
        """The fault that was reported from inside."""
        assert self.inside is not None and self.inside.fault is not None
        told = self.inside.fault
        with self.log.path.open("rb") as text:
            lines = observe.last_lines(text, 5)
            text.seek(0)
            kind = "disk-full" if observe.out_of_space(text) else told.get("kind", "sandbox")
        said = f": {' / '.join(lines)}" if lines else ""
        return NodeFault(kind[:50], f"{told.get('message', '')}{said}"[:2000], told.get("advice", "")[:500])


def _checked_env(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise NodeFault(
                "order", f"{name!r} cannot be a variable of the environment", "Use letters, digits and '_'."
            )
    return dict(env)
