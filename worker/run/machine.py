"""What a machine is, and what it is busy with: numbers that were measured are looked at with these."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

import psutil

CPUINFO = Path("/proc/cpuinfo")
CPUS = Path("/sys/devices/system/cpu")
#: What says nothing of a processor: marks, what all are called, its clock, which "-Core" says of it.
_EMPTY = re.compile(r"\((?:R|TM|C)\)|\b(?:CPU|Processor|with Radeon.*)\b|@.*|\b\d+-Core\b", re.IGNORECASE)
_MODEL = re.compile(r"^(?:model name|Model|cpu model|Processor)\s*:\s*(.+)$", re.MULTILINE)


def facts() -> dict[str, str]:
    """At the beginning of a run."""
    found = {"cpu": cpu(), "governor": governor()}
    if hasattr(os, "getloadavg"):
        found["load"] = f"{os.getloadavg()[0]:.2f}"
    return {name: value for name, value in found.items() if value}


@cache
def hardware() -> str:
    """The class of the machine: "AMD EPYC 7763, 64 CPUs"."""
    count = present()
    return f"{cpu()}, {count} {'CPU' if count == 1 else 'CPUs'}"


def present(cpus: Path = CPUS) -> int:
    """CPUs, those that are offline included: taking some offline makes no other machine of it, with which the numbers
    of this one could not be compared."""
    return len(list(cpus.glob("cpu[0-9]*"))) or psutil.cpu_count() or 1


@cache
def cpu() -> str:
    """/proc/cpuinfo, which never says another model, has hundreds of KiB where there are many CPUs."""
    return short(_read(CPUINFO)) or platform.processor() or platform.machine()


def short(cpuinfo: str) -> str:
    """The model in /proc/cpuinfo, without what says nothing; empty where there is none, as on many ARM machines."""
    found = _MODEL.search(cpuinfo)
    return " ".join(_EMPTY.sub(" ", found[1]).split()).rstrip(" ,") if found else ""


def governor(cpus: Path = CPUS) -> str:
    """Of all CPUs; empty where the machine, as most virtual ones, has none to choose."""
    found = {_read(path).strip() for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(found - {""}))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
