"""Sandboxes: whether something runs in them here, and how far they keep it apart."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from worker.doctor.finding import Finding, Findings, gib, ok, problem, warning
from worker.doctor.places import FEW, LEAST, nearest
from worker.errors import NodeFault
from worker.gpus import Nvml
from worker.run import cgroups
from worker.run.job import install_inside
from worker.run.process import ProcessSandbox
from worker.run.view import View
from worker.settings import Settings

if TYPE_CHECKING:
    # Its library is slow to import, and not every node has an engine.
    from worker.run.docker.checkup import Checkup

#: Kernel settings that decide whether a user who is not root may make namespaces, and the value that forbids it.
NAMESPACES = {
    "kernel/unprivileged_userns_clone": "0",
    "kernel/apparmor_restrict_unprivileged_userns": "1",
    "user/max_user_namespaces": "0",
}
PROC = Path("/proc/sys")
WEAK = "Install bubblewrap (apt-get install bubblewrap), or allow containers alone: FIRSTBAD_SANDBOXES=docker"


@contextmanager
def scratch(work_dir: Path) -> Iterator[Path]:
    """A folder that all users can enter, on the disk of jobs where that can be written; gone afterwards."""
    there = nearest(work_dir)
    place = there if os.access(there, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(dir=place, prefix=".doctor-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def process(settings: Settings) -> Findings:
    if "process" not in settings.sandboxes:
        yield ok("process", "not allowed here (FIRSTBAD_SANDBOXES)")
        return
    with scratch(settings.work_dir) as folder:
        view = View(settings.visible, (settings.work_dir, *settings.hidden))
        sandbox = ProcessSandbox(folder, install_inside(folder), view, settings.sandbox_uid)
        try:
            facts = sandbox.facts()
        except NodeFault as fault:
            yield problem("process", fault.message, fault.advice)
            return
        finally:
            sandbox.close()
    user = sandbox.uid if sandbox.uid is not None else os.geteuid()
    found = f"runs Python {facts['python']} as user {user}, by {type(sandbox.isolation).__name__.lower()}"
    missing = facts["not_isolated"]
    if not sandbox.isolation.own_view:
        why = "bwrap is not installed" if shutil.which("bwrap") is None else f"bwrap does not work here{_forbidden()}"
        yield warning("process", f"{found}: {why}; not kept apart: {missing}", WEAK)
    elif os.geteuid() == 0 and sandbox.uid is None:
        yield warning(
            "process", f"{found}; runs are root", "Let other users read this Python, so that runs need not be."
        )
    else:
        yield ok("process", f"{found}; not kept apart: {missing}")


def _forbidden() -> str:
    """By what kernel setting, as far as that can be told."""
    for name, value in NAMESPACES.items():
        path = PROC / name
        if os.geteuid() != 0 and path.exists() and path.read_text().strip() == value:
            return f" (sysctl {name.replace('/', '.')}={value} forbids namespaces to others than root)"
    return ""


def groups() -> Findings:
    version = "2" if (cgroups.ROOT / "cgroup.controllers").exists() else "1"
    if not any(cgroups.ROOT.glob("*")):
        yield warning("cgroups", f"{cgroups.ROOT} is empty", "Mount control groups: runs have no limits without.")
        return
    if os.geteuid() != 0:
        found = f"version {version}; the worker is not root and makes none: process sandboxes limit no memory"
        yield warning(
            "cgroups", found, "Run the worker as root, or give limits by containers: FIRSTBAD_SANDBOXES=docker"
        )
        return
    groups = cgroups.Groups(f"doctor-{uuid.uuid4().hex[:8]}")
    with groups.one(64, 64 * 1024**2, 1.0) as group:
        made = group is not None
    groups.close()
    missing = [name for name in cgroups.CONTROLLERS if name not in groups.parents]
    if not made or missing:
        what = ", ".join(missing) or "a group"
        advice = "Delegate the controllers to the worker: echo +memory +pids +cpu +cpuset > cgroup.subtree_control"
        yield warning("cgroups", f"version {version}; cannot be limited here: {what}", advice)
    else:
        yield ok("cgroups", f"version {version}: {', '.join(groups.parents)}")


def docker(settings: Settings) -> Findings:
    """Errors: NodeFault."""
    if "docker" not in settings.sandboxes:
        yield ok("docker", "not allowed here (FIRSTBAD_SANDBOXES)")
        return
    from worker.run.docker.checkup import TRIED, Checkup  # noqa: F811

    checkup = Checkup(settings.docker_host)
    try:
        engine = checkup.engine()
    except NodeFault as fault:
        advice = f"{fault.advice} Where no containers are wanted: FIRSTBAD_SANDBOXES=process"
        yield problem("docker", fault.message, advice)
        return
    yield ok("docker", f"engine {engine.version}, API {engine.api}{', rootless' if engine.rootless else ''}")
    yield _storage(engine.driver, engine.root)
    yield _others(engine.workers, settings.work_dir)
    names = checkup.images()
    if not names:
        advice = "Pull one, so that the first run need not: docker pull python:3.12-slim, or your recipe's image"
        yield warning("docker.container", "no image is here, so that no container could be tried", advice)
        return
    tried, image = _container(checkup, names[:TRIED], settings.work_dir)
    yield tried
    if image:
        yield from _gpus(checkup, image, settings, engine.runtimes)


def _storage(driver: str, root: Path) -> Finding:
    if not root.is_dir():
        return ok("docker.storage", f"{driver}; {root} cannot be seen from here")
    usage = psutil.disk_usage(str(root))
    found = f"{driver}; {gib(usage.free)} of {gib(usage.total)} are free in {root}"
    advice = "Free space: docker system df shows what takes it, docker image prune -a removes unused images."
    if usage.free < LEAST:
        return problem("docker.storage", found, advice)
    if driver == "vfs":
        return warning("docker.storage", found, "Use overlay2: vfs copies the whole image for every container.")
    return warning("docker.storage", found, advice) if usage.free < FEW else ok("docker.storage", found)


def _others(workers: dict[str, int], work_dir: Path) -> Finding:
    mine = work_dir / "id"
    own = mine.read_text(encoding="ascii") if mine.is_file() else ""
    strange = sum(count for name, count in workers.items() if name != own)
    if strange:
        advice = "Where no other worker runs: docker ps -a --filter label=firstbad.worker shows them; docker rm -f"
        return warning("docker.left", f"{strange} containers are of workers with another folder", advice)
    return ok("docker.left", f"{workers.get(own, 0)} containers of this worker, none of others")


def _container(checkup: Checkup, names: tuple[str, ...], work_dir: Path) -> tuple[Finding, str]:
    """And the image that a container could be run of; empty when none could."""
    with scratch(work_dir) as folder:
        for name in names:
            try:
                checkup.run(name, folder)
            except NodeFault as fault:
                if fault.kind != "image":
                    return problem("docker.container", fault.message, fault.advice), ""
            else:
                return ok("docker.container", f"a container of {name} runs, and sees this node's folders"), name
    advice = "Pull one that has: docker pull python:3.12-slim, or your recipe's image"
    found = f"no container could be tried: {', '.join(names)} have no python3"
    return warning("docker.container", found, advice), ""


def _gpus(checkup: Checkup, image: str, settings: Settings, runtimes: tuple[str, ...]) -> Findings:
    if settings.gpus or not Nvml().inventory:
        yield ok("docker.gpus", "no real card that a container could be given")
        return
    try:
        with scratch(settings.work_dir) as folder:
            checkup.run(image, folder, gpus=1)
    except NodeFault as fault:
        yield problem("docker.gpus", f"{fault.message} (runtimes: {', '.join(runtimes)})", fault.advice)
    else:
        yield ok("docker.gpus", "a container is given a card")
