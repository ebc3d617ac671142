"""The process sandbox: bubblewrap where it works, else unshare, else plain processes. Says what is not isolated."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import platform
import shutil
import subprocess
import uuid
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import psutil

from worker.errors import NodeFault, fault_of
from worker.kept import Item
from worker.run import cgroups, models, ports
from worker.run import job as jobs
from worker.run.bubblewrap import Bubblewrap
from worker.run.fallback import Plain, Unshare
from worker.run.job import Errand, Job
from worker.run.processors import bound
from worker.run.sandbox import GRACE_S, PLACE, Left, Ran, base_env
from worker.run.stop import Stop
from worker.run.view import View, interpreter, uv

log = logging.getLogger(__name__)

ALL = ("pid", "net", "mount", "ipc", "uts", "user", "pids", "memory", "cpus", "shm")
TOOLS = ("bwrap", "unshare")


class Isolation(Protocol):
    """`own_view`: it has a file system of its own. `net`: it can have a network of its own."""

    @property
    def own_view(self) -> bool: ...
    @property
    def net(self) -> bool: ...
    @property
    def isolated(self) -> tuple[str, ...]: ...
    def command(self, job: Job, errand: Errand, models: Path | None) -> list[str]: ...


class ProcessSandbox:
    """`work_dir`: where it may make a job to find out what works here. `uid`: who runs inside when we are root.

    `tools`: what it may use of this node for isolation. `models`: the node's folder of models.
    """

    kind = "process"

    def __init__(
        self,
        work_dir: Path,
        inside: Path,
        view: View,
        uid: int,
        tools: tuple[str, ...] = TOOLS,
        models: Path | None = None,
    ) -> None:
        self._work_dir, self._inside, self._view, self._models = work_dir, inside, view, models
        self._tools = {name: path for name in tools if (path := shutil.which(name))}
        self._other = uid if os.geteuid() == 0 else None
        self._groups = cgroups.Groups(jobs.identity(work_dir))

    @property
    def uid(self) -> int | None:
        return self._found[1]

    @property
    def isolation(self) -> Isolation:
        return self._found[0]

    @property
    def python(self) -> str | None:
        return self._found[2]

    @cached_property
    def _found(self) -> tuple[Isolation, int | None, str]:
        """What works on this node, tried once, the strongest first."""
        for isolation, uid in self._candidates():
            python = self._works(isolation, uid, f"try-{uuid.uuid4().hex}")
            if python is not None:
                return isolation, uid, python
            log.warning("%s, as user %s, does not work on this node", type(isolation).__name__, uid or "of the worker")
        raise NodeFault("sandbox", "no process can be run on this node", "See what Python and bash say there.")

    def _candidates(self) -> Iterator[tuple[Isolation, int | None]]:
        """Root stays root only where a sandbox shows the node's own files: another user may not read Python there."""
        bwrap, unshare = self._tools.get("bwrap"), self._tools.get("unshare")
        setpriv = shutil.which("setpriv")
        for net in (True, False) if bwrap else ():
            yield Bubblewrap(str(bwrap), self._view, self._inside, net), self._other
        weak = [Unshare(str(unshare), setpriv, net) for net in (True, False)] if unshare else []
        yield from itertools.product([*weak, Plain(setpriv)], dict.fromkeys((self._other, None)))

    def _works(self, isolation: Isolation, uid: int | None, name: str) -> str | None:
        """The version of the Python inside, when it works."""
        job = jobs.create(self._work_dir / "jobs", name, uid)
        try:
            errand = Errand({"script": "true", "offline": True, "timeout_s": 10.0, "log_cap_bytes": 4096}, 10.0)
            command, stop = self._prepared(job, errand, isolation, uid), Stop()
            with stop.within(20.0):
                status = _execute(command, job, stop, isolation)
            outcome = jobs.read_outcome(job)
            worked = status == 0 and outcome is not None and outcome.exit_status == 0
            return outcome.python if worked and outcome is not None else None
        finally:
            jobs.delete(job.root)

    def place(self, job: Job) -> str:
        return PLACE if self.isolation.own_view else str(job.root)

    def stands_on(self, image: str | None, stop: Stop) -> str:
        return (
            f"{interpreter()} {self.python}, {'a view of its own' if self.isolation.own_view else 'the node as it is'}"
        )

    def facts(self) -> dict[str, str]:
        return self._facts(network=False, gpus=False)

    def _facts(self, *, network: bool, gpus: bool) -> dict[str, str]:
        """`gpus`: it has some, and so sees those of others."""
        isolated = {*self.isolation.isolated, *("cpus" if name == "cpu" else name for name in self._groups.parents)}
        isolated |= {"net"} if self.isolation.net and not network else set()
        isolated |= {"user"} if self.uid is not None else set()
        missing = [name for name in ALL if name not in isolated] + (["gpus"] if gpus else [])
        return {
            "sandbox": self.kind,
            "isolation": ",".join(name for name in ALL if name in isolated) or "none",
            "not_isolated": ",".join(missing) or "none",
            "python": self._found[2],
            "system": f"{platform.system()} {platform.release()}",
        }

    def left(self) -> tuple[Left, ...]:
        """None: what runs here ends with the worker that started it."""
        return ()

    def attach(self, left: Left, job: Job, errand: Errand, stop: Stop) -> Ran:
        raise NodeFault("sandbox", f"no process of the run {left.id} is left", "")

    def remove_orphans(self, keep: Collection[Left] = ()) -> int:
        self._groups.remove_leftovers()
        return 0

    def settle(self) -> None:
        """Nothing is ever owed."""

    def kept(self) -> Iterator[Item]:
        return iter(())

    def close(self) -> None:
        self._groups.close()

    def run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        if errand.network not in ("none", "bridge"):
            message = f"the process sandbox has no network {errand.network!r}, but the node's own"
            raise NodeFault(
                "network", message, "Submit with `sandbox: docker`, or with the network `none` or `bridge`."
            )
        # A run that waits for its port has not begun: the time that it may take is all its own.
        with self._port(errand, stop) as errand, stop.within(errand.timeout_s + GRACE_S):
            return self._run(job, errand, stop)

    @contextlib.contextmanager
    def _port(self, errand: Errand, stop: Stop) -> Iterator[Errand]:
        """Where the network is shared, a server has its port to itself."""
        serve = errand.order.get("serve")
        if serve is None or (self.isolation.net and not errand.online):
            yield errand
            return
        movable = _movable(serve["command"], errand.order.get("check"))
        with ports.one(serve["port"], stop, movable=movable, wait_s=errand.timeout_s + 2 * GRACE_S) as port:
            yield replace(errand, order={**errand.order, "serve": {**serve, "port": port}})

    def _run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        command = self._prepared(job, errand, self.isolation, self.uid)
        with self._groups.one(errand.pids, errand.memory_bytes, errand.cpus, errand.pinned) as group:
            before = group.kills() if group is not None else 0
            status = _execute(_joined(command, group), job, stop, self.isolation)
            killed = group is not None and group.kills() > before
        facts = self._facts(network=errand.online, gpus=any(gpu.uuid for gpu in errand.gpus))
        return Ran(status, killed, {**facts, **bound(errand.pinned, memory=group is not None and group.binds)})

    def _prepared(self, job: Job, errand: Errand, isolation: Isolation, uid: int | None) -> list[str]:
        """The command, after all that it needs was written into the job."""
        place = PLACE if isolation.own_view else str(job.root)
        own_network = isolation.net and not errand.online
        folder = models.folder(self._models, errand.model_cache, uid)
        order = {
            **errand.order,
            "uid": uid,
            # bubblewrap brings the loopback up itself.
            "loopback": own_network and not isolation.own_view,
            # Becoming another user undoes --die-with-parent, and not every sandbox has it: what runs inside sees the
            # worker's end by the end of its standard input.
            "watch_parent": True,
            "pids": None if "pids" in self._groups.parents else errand.pids,
            "affinity": sorted(errand.pinned.cpus) if errand.pinned is not None else None,
            "env": _env(errand, isolation, place),
        }
        jobs.fill(job, order)
        jobs.hand_over(job, errand.secrets, uid)
        if not isolation.own_view:
            self._link(job, errand, folder)
        return isolation.command(job, errand, folder)

    def _link(self, job: Job, errand: Errand, models: Path | None) -> None:
        """For a sandbox without a view of its own: the folder looks as it does in the others."""
        (job.root / "inside").symlink_to(self._inside)
        (job.root / "bin").mkdir()
        found = uv()
        if found is not None:
            (job.root / "bin" / "uv").symlink_to(found)
        if errand.cache is not None:
            (job.root / "cache").symlink_to(errand.cache)
        if errand.environment is not None:
            (job.root / "env").symlink_to(errand.environment)
        if models is not None:
            (job.root / "models").symlink_to(models)


def _env(errand: Errand, isolation: Isolation, place: str) -> dict[str, str]:
    """The lease of cards counts more than what an order says of them."""
    cards = {}
    if errand.gpus or not isolation.own_view:
        # As the driver's library counts them, which is not how CUDA does by itself.
        cards = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        cards["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu.index) for gpu in errand.gpus)
    seen = models.variables(errand.model_cache, place, online=errand.online)
    return {**base_env(place, cached=errand.cache is not None), "PATH": _path(place), **seen, **errand.env, **cards}


def _movable(command: str, check: str | None) -> bool:
    """Whether the server goes where it is told to, and the check finds it there."""
    told = check is None or "FIRSTBAD_PORT" in check or "FIRSTBAD_URL" in check
    return "FIRSTBAD_PORT" in command and told


def _path(place: str) -> str:
    folders = [f"{place}/bin", str(interpreter().parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    return ":".join(folders)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills the first process inside. The sandbox ends after it, and it ends only after all the others inside."""
    try:
        inside = psutil.Process(process.pid).children()
        for child in inside:
            child.kill()
    except psutil.NoSuchProcess:
        inside = []
    if not inside:
        process.kill()


def _joined(command: list[str], group: cgroups.Group | None) -> list[str]:
    """Joins its group before it becomes the sandbox, so that none of its children is outside; no core files."""
    entries = group.entries if group is not None else []
    steps = ["ulimit -c 0", *(f'echo $$ > "${number}"' for number, _ in enumerate(entries, 1))]
    return ["/bin/sh", "-c", f'{" && ".join(steps)} && shift {len(entries)} && exec "$@"', "sh", *entries, *command]


def _execute(command: list[str], job: Job, stop: Stop, isolation: Isolation) -> int:
    plain = isinstance(isolation, Plain)
    try:
        with (job.root / "sandbox.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
    except OSError as error:
        raise fault_of(error, f"starting {command[0]}") from error
    assert process.stdin is not None
    with process.stdin, stop.calling(process.terminate if plain else lambda: end(process)):
        return process.wait()
