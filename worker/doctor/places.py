"""Folders: the worker's own, the store, models, and what an earlier life left in them."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from worker.build.source import redacted
from worker.build.store import Store
from worker.doctor.finding import Finding, Findings, gib, ok, problem, warning
from worker.errors import NodeFault
from worker.outgoing import BROKEN
from worker.run import models
from worker.run.hub import Hub
from worker.run.shared import shared_path
from worker.settings import Settings

#: Bytes and inodes that are free: with fewer nothing works, or soon nothing.
LEAST, FEW = 1024**3, 20 * 1024**3
LEAST_INODES, FEW_INODES = 1000, 100_000
#: Seconds until a result is recorded, where all is well, and some more.
RECORDED_S = 60.0
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre", "ceph", "fuse.glusterfs")


def nearest(path: Path) -> Path:
    """The folder itself, or the one above it in which it would be made."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))


def work_dir(path: Path) -> Findings:
    there = nearest(path)
    if path.exists() and not path.is_dir():
        yield problem("work_dir", f"{path} is no folder", "Name a folder in FIRSTBAD_WORK_DIR.")
        return
    advice = "Let the worker's user write there, mount it writable, or name another FIRSTBAD_WORK_DIR."
    yield _writable("work_dir", path, there, advice)
    yield _room("work_dir.disk", there, "Free space, or move FIRSTBAD_WORK_DIR; FIRSTBAD_CACHE_BUDGET limits caches.")
    yield _inodes(there)
    yield from _mount(there)


def _writable(check: str, wanted: Path, there: Path, advice: str) -> Finding:
    """`there`: the folder itself, or the one above it in which it would be made."""
    refused = _refused(there)
    if refused:
        return problem(check, f"{there} cannot be written: {refused}", advice)
    return ok(check, f"{wanted}{'' if there == wanted else f', which will be made in {there}'}")


def _refused(folder: Path) -> str:
    """Why nothing can be written there: tried with a file without a name, so that nothing is ever left."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"firstbad")
            file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _room(check: str, folder: Path, advice: str) -> Finding:
    usage = psutil.disk_usage(str(folder))
    found = f"{gib(usage.free)} of {gib(usage.total)} are free in {folder}"
    if usage.free < LEAST:
        return problem(check, found, advice)
    return warning(check, found, advice) if usage.free < FEW else ok(check, found)


def _inodes(folder: Path) -> Finding:
    stat = os.statvfs(folder)
    if not stat.f_files:
        return ok("work_dir.inodes", "this file system does not count them")
    found = f"{stat.f_favail} of {stat.f_files} inodes are free in {folder}"
    advice = "Remove files there, or move FIRSTBAD_WORK_DIR: environments are many small files."
    if stat.f_favail < LEAST_INODES:
        return problem("work_dir.inodes", found, advice)
    if stat.f_favail < FEW_INODES:
        return warning("work_dir.inodes", found, advice)
    return ok("work_dir.inodes", found)


def mount_of(folder: Path) -> Any:
    """The mount that it is on: the deepest one, and of those on the same folder the last."""
    path = folder.resolve()
    found = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    deepest = max((len(Path(part.mountpoint).parts) for part in found), default=0)
    return next((part for part in reversed(found) if len(Path(part.mountpoint).parts) == deepest), None)


def _mount(folder: Path) -> Findings:
    part = mount_of(folder)
    if part is None:
        yield ok("work_dir.mount", "not known")
        return
    options, where = part.opts.split(","), f"{part.mountpoint} ({part.fstype})"
    if "noexec" in options:
        advice = f"mount -o remount,exec {part.mountpoint}, or move FIRSTBAD_WORK_DIR: builds run programs from there."
        yield problem("work_dir.mount", f"{where} is mounted noexec", advice)
    elif part.fstype in REMOTE:
        advice = "Give the worker a local disk: locks, owners and speed of a network's file system are not its own."
        yield warning("work_dir.mount", f"{where} is a network's", advice)
    elif part.fstype in ("tmpfs", "ramfs"):
        yield warning(
            "work_dir.mount", f"{where} lies in memory", "Give the worker a disk: jobs would take its memory."
        )
    else:
        yield ok("work_dir.mount", where)


def store(url: str) -> Findings:
    """Errors: NodeFault."""
    found, name = Store(url), redacted(url)
    if found.local is None:
        found.check()
        yield ok("store", f"{name} was written and cleared again")
        return
    there = nearest(found.local)
    advice = "Let the worker's user write there, and mount it writable: FIRSTBAD_STORE_URL."
    yield _writable("store", found.local, there, advice)
    yield _room("store.disk", there, "Free space, or keep less: FIRSTBAD_STORE_BUDGET of the service.")


def model_cache(settings: Settings) -> Findings:
    if settings.model_cache is None:
        yield ok("models", "no FIRSTBAD_MODEL_CACHE: runs bring their models themselves")
        return
    uid = settings.sandbox_uid if os.geteuid() == 0 else None
    try:
        models.folder(settings.model_cache, "read-only", uid)
    except NodeFault as fault:
        yield problem("models", fault.message, fault.advice)
        return
    if not os.access(settings.model_cache, os.R_OK | os.X_OK):
        yield problem("models", f"{settings.model_cache} cannot be read", "Let the worker's user read it.")
        return
    names = Hub(settings.model_cache).models()
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    yield ok("models", f"{settings.model_cache} holds {shown or 'no model yet'}")


def leases(settings: Settings) -> Findings:
    """The folder in which the workers of this node agree on cards."""
    folder = settings.gpu_dir or shared_path("gpus")
    there = nearest(folder)
    refused = _refused(there)
    if refused:
        advice = "Let all workers of the node write there, or name another FIRSTBAD_GPU_DIR for all of them."
        yield problem("gpus.leases", f"{there} cannot be written: {refused}", advice)
    else:
        yield ok("gpus.leases", f"{folder}; all workers of this node must name the same")


def left(path: Path) -> Findings:
    """What earlier lives left, and who works here now."""
    holder = held_by(path / "worker.lock")
    jobs, trash = _count(path / "jobs"), _count(path / "trash")
    # A worker has what ended just now: it looks every few seconds whether it was recorded.
    late_s = RECORDED_S if holder is not None else 0.0
    waiting = sum(_age_s(file) >= late_s for file in (path / "outgoing").glob("*.json"))
    broken = len(list((path / "outgoing").glob(f"*{BROKEN}")))
    if holder is not None:
        yield ok("left", f"a worker is at work in {path} (pid {holder}), on {jobs} jobs")
    elif jobs or trash:
        yield ok("left", f"{jobs} jobs and {trash} folders of an earlier worker; the next one removes or adopts them")
    else:
        yield ok("left", "nothing of an earlier worker")
    if waiting:
        away = "See what Redis says, and the log of the service's control worker."
        advice = "They are sent once a worker runs here and Redis answers." if holder is None else away
        yield warning("left.results", f"{waiting} results wait in {path / 'outgoing'}", advice)
    if broken:
        found = f"{broken} files in {path / 'outgoing'} are no messages, or never recorded, and were set aside"
        yield warning("left.broken", found, f"Look at them, and remove them: {path / 'outgoing'}/*{BROKEN}")


def _age_s(file: Path) -> float:
    """Below any bound for one that is gone."""
    try:
        return max(time.time() - file.stat().st_mtime, 0.0)
    except FileNotFoundError:
        return -1.0


def _count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def held_by(lock: Path) -> int | None:
    """The process that holds it, asked of the kernel: who took it for a moment could keep a worker from starting."""
    try:
        inode, lines = lock.stat().st_ino, Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for fields in (line.split() for line in lines):
        if "FLOCK" in fields and len(fields) > 5 and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None
