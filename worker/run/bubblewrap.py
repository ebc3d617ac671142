"""The bubblewrap command line: a view of its own, namespaces of its own, one process that all the others end with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from worker.run.job import Errand, Job, command
from worker.run.sandbox import PLACE, SHM_BYTES
from worker.run.view import View, interpreter, resolver, uv

#: What a program that uses a card looks at besides its device files.
SYSFS = "/sys"


@dataclass(frozen=True)
class Bubblewrap:
    binary: str
    view: View
    inside: Path
    net: bool = True
    own_view = True

    @property
    def isolated(self) -> tuple[str, ...]:
        return ("pid", "mount", "ipc", "uts", "shm")

    def command(self, job: Job, errand: Errand, models: Path | None) -> list[str]:
        return [
            self.binary,
            *self._namespaces(own_network=self.net and not errand.online),
            *self._system((*errand.files, *resolver()) if errand.online else ()),
            "--perms", "1777", "--size", str(errand.shm_bytes or SHM_BYTES), "--tmpfs", "/dev/shm",
            *(devices() if any(gpu.uuid for gpu in errand.gpus) else ()),
            *self._job(job, errand),
            *_models(errand, models),
            "--remount-ro", "/dev", "--remount-ro", "/",
            "--chdir", PLACE,
            "--", str(interpreter()), *command(PLACE),
        ]  # fmt: skip

    def _namespaces(self, *, own_network: bool) -> list[str]:
        flags = [f"--unshare-{name}" for name in ("pid", "ipc", "uts", "cgroup-try")]
        flags += ["--unshare-net"] if own_network else []
        flags += ["--hostname", "firstbad", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
        if os.geteuid() == 0:
            # What runs inside starts as root to become another user at once; it cannot regain what it gave up.
            return [*flags, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        return [*flags, "--unshare-user", "--cap-drop", "ALL"]

    def _system(self, files: tuple[Path, ...]) -> list[str]:
        shown = self.view.shown(files)
        # bubblewrap makes missing parents for their owner alone, who is not the one that works inside.
        ours = [Path(PLACE, "in"), Path(PLACE, "bin", "uv"), Path("/var/tmp")]
        parents = {parent for path in [*shown, *ours] for parent in path.parents}
        arguments = []
        for parent in sorted(parents - {Path("/")} - set(shown)):
            arguments += ["--perms", "0755", "--dir", str(parent)]
        for path in shown:
            arguments += ["--ro-bind", str(path), str(path)]
        for link, target in self.view.links().items():
            arguments += ["--symlink", target, str(link)]
        for path in self.view.masked(shown):
            arguments += ["--perms", "0555", "--tmpfs", str(path), "--remount-ro", str(path)]
        return [*arguments, "--proc", "/proc", "--dev", "/dev"]

    def _job(self, job: Job, errand: Errand) -> list[str]:
        arguments = ["--ro-bind", str(job.inputs), f"{PLACE}/in", "--ro-bind", str(self.inside), f"{PLACE}/inside"]
        for folder in (job.out, job.work):
            arguments += ["--bind", str(folder), f"{PLACE}/{folder.name}"]
        arguments += ["--bind", str(job.work / "tmp"), "/tmp", "--bind", str(job.work / "tmp"), "/var/tmp"]
        if errand.cache is not None:
            arguments += ["--bind", str(errand.cache), f"{PLACE}/cache"]
        if errand.environment is not None:
            arguments += ["--bind" if errand.prepares else "--ro-bind", str(errand.environment), f"{PLACE}/env"]
        found = uv()
        return [*arguments, "--ro-bind", str(found), f"{PLACE}/bin/uv"] if found else arguments


def _models(errand: Errand, models: Path | None) -> list[str]:
    if models is None:
        return []
    return ["--bind" if errand.model_cache == "shared" else "--ro-bind", str(models), f"{PLACE}/models"]


def devices() -> list[str]:
    """Those of all cards: a driver that finds some of them counts them anew."""
    files = [str(path) for path in sorted(Path("/dev").glob("nvidia*"))]
    return [*(argument for path in files for argument in ("--dev-bind", path, path)), "--ro-bind", SYSFS, SYSFS]
