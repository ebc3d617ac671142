"""fetch -> build, or fetch -> install and run, then observe. What goes wrong becomes a fault or a failure's facts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from worker import contract, observe
from worker.build import wheels
from worker.build.source import Sources
from worker.build.store import Store
from worker.contract import BuildOrder, BuildResult, Fault, Outcome, Phase, ProbeOrder, ProbeResult
from worker.errors import NodeFault, Stopped, fault_of
from worker.run import job as jobs
from worker.run.bin import Bin
from worker.run.job import Errand, InsideOutcome, Job
from worker.run.logs import KeptLog, assemble
from worker.run.sandbox import Ran, Sandbox
from worker.run.stop import CANCELLED, OVERDUE, Stop

RUN_LINES, BUILD_LINES = 20, 50
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Pipeline:
    """`sandboxes`: by kind, those that are allowed.

    `passed_env`: variables of the node for runs with a network. `files`: those of the node that are shown to them.
    """

    node: str
    work_dir: Path
    store: Store
    sources: Sources
    sandboxes: Mapping[str, Sandbox]
    bin: Bin
    passed_env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def probe(self, order: ProbeOrder, stop: Stop) -> ProbeResult | None:
        """None when the service cancelled it. Raises nothing that the node, the order or the commit can cause."""
        answer = ProbeResult(probe=order.probe, attempt=order.attempt, node=self.node)
        try:
            return answer.model_copy(update={"outcome": self._probe(order, stop)})
        except Stopped as stopped:
            return None if stopped.reason == CANCELLED else answer.model_copy(update={"fault": _stopped()})
        except NodeFault as fault:
            return answer.model_copy(update={"fault": _fault(fault)})

    def build(self, order: BuildOrder, stop: Stop) -> BuildResult | None:
        """None when the service cancelled it. Raises nothing that the node, the order or the commit can cause."""
        began = time.monotonic()
        answer = BuildResult(key=order.key, attempt=order.attempt, node=self.node, seconds=0.0)
        try:
            update: dict[str, Any] = self._build(order, stop)
        except Stopped as stopped:
            if stopped.reason == CANCELLED:
                return None
            update = {"fault": _stopped()}
        except NodeFault as fault:
            update = {"fault": _fault(fault)}
        return answer.model_copy(update={**update, "seconds": time.monotonic() - began})

    def _probe(self, order: ProbeOrder, stop: Stop) -> Outcome:
        began = time.time()
        sandbox = self._sandbox(order.sandbox)
        with self._job(f"{order.probe}.{order.attempt}", sandbox) as job:
            wheel = None
            if order.wheel is not None:
                wheel = order.wheel.rpartition("/")[2]
                _check_name(wheel)
                self.store.get(order.wheel, job.inputs / wheel, order.wheel_sha256)
            else:
                self.sources.archive(order.source, job.inputs / "tree.tar", stop)
            reproduction = order.reproduction
            work = {
                "wheel": wheel,
                "script": reproduction.script,
                "serve": reproduction.serve.model_dump() if reproduction.serve else None,
                "check": reproduction.check,
                "failure": reproduction.failure,
            }
            labels = {"kind": "probe", "bisection": order.bisection, "probe": order.probe}
            run = self._run(order, sandbox, job, stop, work, labels, began)
            last = "script" if reproduction.script is not None else "check"
            return self._outcome(run, f"logs/{order.probe}.{order.attempt}.log", last, reproduction.failure)

    def _build(self, order: BuildOrder, stop: Stop) -> dict[str, Any]:
        began = time.time()
        sandbox = self._sandbox(order.sandbox)
        with self._job(f"build-{order.key}.{order.attempt}", sandbox) as job:
            self.sources.archive(order.source, job.inputs / "tree.tar", stop)
            run = self._run(
                order, sandbox, job, stop, {"build": order.command}, {"kind": "build", "build": order.key}, began
            )
            path = f"logs/{order.key}.{order.attempt}.log"
            if run.exit_status == 0:
                try:
                    found = wheels.take(job.out / "wheels", job.inputs)
                except wheels.NoWheel as none:
                    _append(run.log.path, str(none))
                else:
                    wheel = self._keep(order.key, found)
                    return {"wheel": wheel, "log": self._outcome(run, path, "build").log}
            _check_build(run, order.limits.timeout_s)
            failure = self._outcome(run, path, "build", lines=BUILD_LINES)
            return {"failure": failure, "log": failure.log}

    def _sandbox(self, wanted: contract.Sandbox) -> Sandbox:
        found = self.sandboxes.get(wanted.kind)
        if found is None:
            allowed = ", ".join(sorted(self.sandboxes)) or "none"
            message = f"the {wanted.kind} sandbox is not allowed on {self.node}, which has: {allowed}"
            raise NodeFault("sandbox-refused", message, "See FIRSTBAD_SANDBOXES of this node.")
        return found

    @contextlib.contextmanager
    def _job(self, name: str, sandbox: Sandbox) -> Iterator[Job]:
        job = jobs.create(self.work_dir / "jobs", name, sandbox.uid)
        try:
            yield job
        finally:
            self.bin.throw(job.root)

    def _run(
        self,
        order: BuildOrder | ProbeOrder,
        sandbox: Sandbox,
        job: Job,
        stop: Stop,
        work: dict[str, Any],
        labels: dict[str, str],
        began: float,
    ) -> Run:
        stop.check()
        network = order.sandbox.network != "none"
        place = sandbox.place(job)
        env = {**(self.passed_env if network else {}), "FIRSTBAD_COMMIT": order.source.sha, **_checked_env(order.env)}
        if "build" in work:
            env["FIRSTBAD_OUT"] = f"{place}/out/wheels"
        limits = order.limits
        errand = Errand(
            order={
                **work,
                "offline": not network,
                "timeout_s": limits.timeout_s,
                "log_cap_bytes": limits.log_cap_bytes,
            },
            timeout_s=limits.timeout_s,
            image=order.sandbox.image,
            network=network,
            memory_bytes=limits.memory_bytes,
            pids=limits.pids,
            env=env,
            labels={**labels, "attempt": str(order.attempt), "node": self.node},
            files=self.files,
            cache=self._cache(order, sandbox) if isinstance(order, BuildOrder) else None,
        )
        ran = sandbox.run(job, errand, stop)
        if stop.reason != OVERDUE:
            stop.check()
        # Where what ran inside failed itself, the reproduction may have written an outcome in its place.
        inside = jobs.read_outcome(job) if ran.status == 0 else None
        log = assemble(job, inside.bytes if inside else None, limits.log_cap_bytes)
        return Run(ran, inside, log, time.time() - began, began, overdue=stop.reason == OVERDUE, said=jobs.said(job))

    def _cache(self, order: BuildOrder, sandbox: Sandbox) -> Path:
        """One installer's cache for a repository's builds by the same command; what another runs cannot prepare it."""
        same = [order.source.repo, order.sandbox.model_dump(), order.command, order.env]
        digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
        folder = self.work_dir / "cache" / digest[:24]
        try:
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
                if sandbox.uid is not None:
                    os.chown(folder, sandbox.uid, sandbox.uid)
        except OSError as error:
            raise fault_of(error, f"making {folder}") from error
        return folder

    def _keep(self, key: str, wheel: Path) -> contract.Wheel:
        path = f"wheels/{key}/{wheel.name}"
        size = wheel.stat().st_size
        return contract.Wheel(name=wheel.name, path=path, bytes=size, sha256=self.store.put(wheel, path))

    def _outcome(
        self, run: Run, path: str, last: str, failure: str | None = None, *, lines: int = RUN_LINES
    ) -> Outcome:
        inside = run.inside
        if inside is not None and inside.fault is not None:
            raise run.fault()
        if inside is None and not (run.overdue or run.ran.out_of_memory):
            raise NodeFault("sandbox", f"the sandbox ended before its work did: {run.said}", "See the node's log.")
        self.store.put(run.log.path, path)
        with run.log.path.open("rb") as text:
            last_lines = observe.last_lines(text, lines)
            text.seek(0)
            seen = (inside.failure_seen if inside else None) or observe.first_with(text, failure)
        log = contract.Log(path=path, bytes=run.log.bytes, cut=run.log.cut, last_lines=last_lines)
        return Outcome(
            exit_status=inside.exit_status if inside else None,
            signal=inside.signal if inside else None,
            ready=inside.ready if inside else None,
            timed_out=inside.timed_out if inside else run.overdue,
            out_of_memory=run.ran.out_of_memory,
            ended_in=inside.ended_in if inside else last,
            phases=run.phases(),
            log=log,
            failure_seen=observe.readable(seen.encode()) if seen else None,
            environment={**(inside.facts if inside else {}), **run.ran.facts, "node": self.node},
        )


@dataclass(frozen=True)
class Run:
    """A run that is over: what the sandbox, inside.py and the log say. `fetch_s` until it is over, since `began`."""

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

    def phases(self) -> tuple[Phase, ...]:
        """With times since the order was taken; unpacking belongs to the fetch."""
        if self.inside is None:
            return ()
        shift = min(max(self.inside.began - self.began, 0.0), self.seconds)
        rest = [phase for phase in self.inside.phases if phase.name != "unpack"]
        fetched = shift + sum(phase.seconds or 0.0 for phase in self.inside.phases if phase.name == "unpack")
        run = [Phase(name=phase.name, at_s=shift + phase.at_s, seconds=phase.seconds or 0.0) for phase in rest]
        return (Phase(name="fetch", at_s=0.0, seconds=fetched), *run)

    def fault(self) -> NodeFault:
        """The fault that inside.py reports."""
        assert self.inside is not None and self.inside.fault is not None
        told = self.inside.fault
        with self.log.path.open("rb") as text:
            lines = observe.last_lines(text, 5)
            text.seek(0)
            kind = "disk-full" if observe.out_of_space(text) else told.get("kind", "sandbox")
        said = f": {' / '.join(lines)}" if lines else ""
        return NodeFault(kind[:50], f"{told.get('message', '')}{said}"[:2000], told.get("advice", "")[:500])


def _check_build(run: Run, timeout_s: float) -> None:
    """Errors: NodeFault, when it was the node that kept a failed build from ending well."""
    with run.log.path.open("rb") as text:
        if observe.out_of_space(text):
            raise NodeFault("disk-full", "no space left on the node while building", "Free space in work_dir.")
    if run.ran.out_of_memory:
        raise NodeFault("out-of-memory", "the build was killed for memory", "Allow it more memory, or fewer jobs.")
    if run.overdue or (run.inside is not None and run.inside.timed_out):
        message = f"the build took longer than {timeout_s:.0f} s"
        raise NodeFault("build-timeout", message, "Allow it more time, or use a faster node.")


def _append(log: Path, text: str) -> None:
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{stamp} firstbad: {text}\n")


def _check_name(wheel: str) -> None:
    try:
        wheels.check_name(wheel)
    except wheels.NoWheel as error:
        raise NodeFault("order", str(error), "") from error


def _checked_env(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise NodeFault(
                "order", f"{name!r} cannot be a variable of the environment", "Use letters, digits and '_'."
            )
    return dict(env)


def _fault(fault: NodeFault) -> Fault:
    return Fault(kind=fault.kind, message=fault.message, advice=fault.advice)


def _stopped() -> Fault:
    return Fault(kind="stopped", message="the worker was stopped while this ran", advice="It is tried again elsewhere.")
