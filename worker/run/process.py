"""The process sandbox: bubblewrap where it works, else a plain process group; says what it could not isolate."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import psutil

from worker.errors import fault_of
from worker.run import cgroups
from worker.run import job as jobs
from worker.run.bubblewrap import ISOLATED, Bubblewrap
from worker.run.job import Errand, Job
from worker.run.sandbox import PLACE, Ran, base_env
from worker.run.stop import Stop
from worker.run.view import View, interpreter, uv

ALL = ("pid", "net", "mount", "ipc", "uts", "user", "pids", "memory")


class Isolation(Protocol):
    @property
    def net(self) -> bool: ...

    def command(self, job: Job, errand: Errand) -> list[str]: ...


class ProcessSandbox:
    """`work_dir`: where it may make a job to find out what works here. `uid`: who runs inside when we are root."""

    kind = "process"

    def __init__(self, work_dir: Path, inside: Path, view: View, uid: int) -> None:
        self._work_dir, self._inside, self._view = work_dir, inside, view
        self._groups = cgroups.Groups()
        self.uid = uid if os.geteuid() == 0 else None

    @cached_property
    def isolation(self) -> Isolation | None:
        """What works on this node, tried once."""
        binary = shutil.which("bwrap")
        for net in (True, False):
            candidate = Bubblewrap(binary, self._view, self._inside, net) if binary else None
            if candidate is not None and self._works(candidate):
                return candidate
        return None

    def _works(self, candidate: Isolation) -> bool:
        job = jobs.create(self._work_dir / "jobs", f"try-{os.getpid()}-{id(candidate):x}", self.uid)
        try:
            errand = Errand(_trial(self.uid), timeout_s=10.0)
            jobs.fill(job, errand.order)
            done = subprocess.run(candidate.command(job, errand), capture_output=True, timeout=20.0, check=False)
            outcome = jobs.read_outcome(job)
            return done.returncode == 0 and outcome is not None and outcome.exit_status == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            jobs.delete(job.root)

    def place(self, job: Job) -> str:
        return PLACE if self.isolation is not None else str(job.root)

    def facts(self) -> dict[str, str]:
        return self._facts(network=False)

    def _facts(self, *, network: bool) -> dict[str, str]:
        isolated = []
        if self.isolation is not None:
            isolated = [*ISOLATED, *(["net"] if self.isolation.net and not network else [])]
        isolated += ["user"] if self.uid is not None else []
        isolated += sorted(self._groups.parents)
        return {
            "sandbox": self.kind,
            "isolation": ",".join(isolated) or "none",
            "not_isolated": ",".join(name for name in ALL if name not in isolated) or "none",
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()}",
        }

    def remove_orphans(self) -> int:
        """None: what runs here ends with the worker that started it."""
        self._groups.remove_leftovers()
        return 0

    def run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        own_network = self.isolation is not None and self.isolation.net and not errand.network
        place = self.place(job)
        order = {
            **errand.order,
            "uid": self.uid,
            "own_network": own_network,
            # Becoming another user undoes --die-with-parent, and not every sandbox has it: what runs inside sees the
            # worker's end by the end of its standard input.
            "watch_parent": True,
            "pids": None if "pids" in self._groups.parents else errand.pids,
            "env": {**base_env(place, cached=errand.cache is not None), "PATH": self._path(job), **errand.env},
        }
        jobs.fill(job, order)
        facts = self._facts(network=errand.network)
        with self._groups.one(errand.pids, errand.memory_bytes) as group:
            before = group.kills() if group is not None else 0
            status = self._execute(self._command(job, errand, group), job, stop)
            return Ran(status, group is not None and group.kills() > before, facts)

    def _path(self, job: Job) -> str:
        folder = f"{self.place(job)}/bin"
        return ":".join([folder, str(interpreter().parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"])

    def _command(self, job: Job, errand: Errand, group: cgroups.Group | None) -> list[str]:
        if self.isolation is not None:
            command = self.isolation.command(job, errand)
        else:
            command = [str(interpreter()), *jobs.command(str(job.root))]
            _link_tools(job, errand, self._inside)
        if group is None:
            return command
        # A process joins its group before it becomes the sandbox, so that none of its children is outside.
        joining = " && ".join(f'echo $$ > "${number}"' for number, _ in enumerate(group.entries, 1))
        script = f'{joining} && shift {len(group.entries)} && exec "$@"'
        return ["/bin/sh", "-c", script, "sh", *group.entries, *command]

    def close(self) -> None:
        self._groups.close()

    def _execute(self, command: list[str], job: Job, stop: Stop) -> int:
        plain = self.isolation is None
        try:
            with (job.root / "sandbox.log").open("wb") as log:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=plain, cwd="/"
                )
        except OSError as error:
            raise fault_of(error, f"starting {command[0]}") from error
        assert process.stdin is not None
        with process.stdin, stop.calling(process.terminate if plain else lambda: end(process)):
            return process.wait()


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


def _trial(uid: int | None) -> dict[str, Any]:
    env = {"PATH": f"{interpreter().parent}:/usr/bin:/bin", "HOME": "/"}
    return {"timeout_s": 5.0, "log_cap_bytes": 4096, "env": env, "script": "true", "uid": uid, "offline": True}


def _link_tools(job: Job, errand: Errand, inside: Path) -> None:
    """For a sandbox without a view of its own: the folder looks as it does in the others."""
    (job.root / "inside").symlink_to(inside)
    found = uv()
    (job.root / "bin").mkdir()
    if found is not None:
        (job.root / "bin" / "uv").symlink_to(found)
    if errand.cache is not None:
        (job.root / "cache").symlink_to(errand.cache)
