"""The node itself: its settings, tools, limits, and what it passes on."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from worker.build.source import TRANSPORTS, redacted
from worker.doctor.finding import Findings, gib, ok, problem, warning
from worker.settings import Settings, misspelt, search_path

#: Fewer open files than servers of models need; what distributions give to services.
FEW_FILES, FEW_PROCESSES = 4096, 2048
LITTLE_SHM = 1024**3
OLD_GIT = (2, 25)
PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")
COMPILERS, CACHES = ("cc", "c++", "cmake", "ninja", "nvcc", "cargo"), ("ccache", "sccache")
TIMEOUT_S = 10.0


def settings(found: Settings) -> Findings:
    for name, like in misspelt().items():
        yield warning("settings", f"{name} is no setting", f"Did you mean {like}?")
    cpus = psutil.cpu_count() or 1
    if found.slots > cpus:
        text = f"FIRSTBAD_SLOTS is {found.slots} on {cpus} CPUs"
        yield warning("settings", text, "Runs disturb each other: give it no more slots than the node can do at once.")
    for variable, folders in (("VISIBLE", found.visible), ("HIDDEN", found.hidden)):
        for folder in folders:
            if not folder.is_dir():
                yield warning("settings", f"FIRSTBAD_{variable}: {folder} is no folder", "Correct it, or make it.")
    if found.otlp_endpoint and find_spec("opentelemetry") is None:
        text = "FIRSTBAD_OTLP_ENDPOINT is set, but OpenTelemetry is not installed"
        yield problem("settings", text, "Install firstbad[otel], or take the setting away.")
    roles, sandboxes = ",".join(found.roles), ",".join(found.sandboxes)
    yield ok("settings", f"node {found.node}, {found.slots} slots, roles {roles}, sandboxes {sandboxes}")
    yield ok("labels", ", ".join(found.labels) or "none")


def secrets(found: Settings) -> Findings:
    offered = found.offered_secrets()
    for name in sorted(name for name, value in offered.items() if not value):
        advice = f"Set {name} where the worker starts, or take it from FIRSTBAD_SECRETS."
        yield warning("secrets", f"{name} is offered, but has no value: runs that ask for it end in a fault", advice)
    if all(offered.values()):
        yield ok("secrets", f"{', '.join(sorted(offered)) or 'none'}")


def passed(found: Settings) -> Findings:
    """Files of certificates and addresses of proxies that runs with a network and git are given."""
    for name, value in sorted(found.passed_env().items()):
        if name.lower().endswith("_proxy") and name.lower() != "no_proxy":
            if not urlsplit(value).hostname:
                yield problem("passed", f"{name}={redacted(value)} is no address", "Write it like http://proxy:3128.")
        elif value.startswith("/") and not Path(value).exists():
            yield problem("passed", f"{name}={value} does not exist", f"Correct {name}, or unset it: downloads fail.")
        elif value.startswith("/") and not os.access(value, os.R_OK):
            yield problem(
                "passed", f"{name}={value} cannot be read", f"Let the worker's user read it, or unset {name}."
            )
        else:
            yield ok("passed", f"{name}={redacted(value)}")


def git(found: Settings) -> Findings:
    path = shutil.which("git", path=search_path())
    if path is None:
        yield problem("git", "git is not installed", "Install git (apt-get install git).")
        return
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)[.\d]*", said)
    if version is None:
        yield problem("git", f"{path} does not tell its version: {said.strip()[:100]!r}", "Install git anew.")
    elif (int(version[1]), int(version[2])) < OLD_GIT:
        yield problem("git", f"git {version[0]} is too old", f"Install git {OLD_GIT[0]}.{OLD_GIT[1]} or newer.")
    else:
        yield ok("git", f"git {version[0]}")
    yield from _transports(path, found)


def _transports(git: str, found: Settings) -> Findings:
    asked = subprocess.run([git, "--exec-path"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    allowed = [*TRANSPORTS, *(["file"] if found.allow_file_repos else [])]
    if not (Path(asked.stdout.strip()) / "git-remote-https").exists():
        advice = "Install git with its HTTPS helper, or give nothing but ssh:// addresses to this node."
        yield warning("git.transports", "git has no git-remote-https here", advice)
    elif shutil.which("ssh", path=search_path()) is None:
        advice = "Install an SSH client (apt-get install openssh-client) where repositories are named by ssh://."
        yield warning("git.transports", f"{', '.join(allowed)} are allowed, but there is no ssh", advice)
    else:
        yield ok("git.transports", f"{', '.join(allowed)}")


def limits() -> Findings:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        advice = "LimitNOFILE=65536 in its unit, or ulimit -n 65536: servers hold many files and connections open."
        yield warning("limits.files", f"{soft} open files at most ({_told(hard)} could be allowed)", advice)
    else:
        yield ok("limits.files", f"{_told(soft)} open files at most")
    most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() != 0 and most != resource.RLIM_INFINITY and most < FEW_PROCESSES:
        advice = "LimitNPROC=infinity in its unit, or ulimit -u unlimited."
        yield warning("limits.processes", f"{most} processes at most", advice)
    else:
        yield ok("limits.processes", f"{_told(most)} processes at most")
    if PTRACE.exists() and PTRACE.read_text().strip() == "3":
        advice = "sysctl kernel.yama.ptrace_scope=1 and a reboot, where reproductions use a debugger or a profiler."
        yield warning("limits.ptrace", "no process may be traced (ptrace_scope is 3)", advice)


def _told(limit: int) -> str:
    return "any number of" if limit == resource.RLIM_INFINITY else str(limit)


def shm() -> Findings:
    """What runs without bubblewrap or a container share."""
    path = Path("/dev/shm")
    if not path.is_dir():
        yield warning(
            "shm", "there is no /dev/shm", "mount -t tmpfs tmpfs /dev/shm: servers of models pass tensors there."
        )
        return
    usage = psutil.disk_usage(str(path))
    found = f"{gib(usage.free)} of {gib(usage.total)} are free in /dev/shm"
    if usage.free < LITTLE_SHM:
        advice = (
            "Remove what was left there, or mount -o remount,size=16G /dev/shm (docker run --shm-size for a container)."
        )
        yield warning("shm", found, advice)
    else:
        yield ok("shm", found)


def compilers(found: Settings) -> Findings:
    if "build" not in found.roles or "process" not in found.sandboxes:
        yield ok("compilers", "nothing is built in processes here: images bring their compilers")
        return
    there = [name for name in (*COMPILERS, *CACHES) if shutil.which(name, path=search_path())]
    shown = ", ".join(there) or "none"
    if "cc" not in there:
        advice = "Install one (apt-get install build-essential), or FIRSTBAD_ROLES=run where others build."
        yield warning("compilers", f"no C compiler for builds in processes; there are: {shown}", advice)
    elif not set(CACHES) & set(there):
        yield warning("compilers", f"{shown}; no ccache", "Install ccache: native code is compiled once then.")
    else:
        yield ok("compilers", shown)
