"""The cards themselves: as the driver sees them, or as they were declared."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import psutil

from worker.contract import Gpu
from worker.errors import NodeFault

log = logging.getLogger(__name__)

#: The share of a card's memory that a driver may take for itself.
OWN_SHARE = 0.05
#: Of nvmlDeviceGetCurrentClocksEventReasons (nvml.h). An idle card (1), and clocks that somebody has set for
#: applications (2) or for displays (256), are as they should be.
REASONS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "too hot",
    0x040: "too hot for the hardware",
    0x080: "power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
#: Linux's number of the name space of processes that a machine begins with (PROC_PID_INIT_INO).
PROC_NS, FIRST_PID_NS = Path("/proc/self/ns/pid"), 0xEFFFFFFC


@dataclass(frozen=True)
class Use:
    """What lies in a card's memory now, and whose that is as far as the driver names them."""

    memory_bytes: int = 0
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class State:
    """Now. None for what the card does not tell. `throttled`: what keeps its clocks down, but for nothing to do."""

    clock_mhz: int | None = None
    temperature_c: int | None = None
    throttled: tuple[str, ...] = ()


class Cards(Protocol):
    @property
    def inventory(self) -> tuple[Gpu, ...]:
        """By index. Errors: NodeFault."""

    @property
    def driver(self) -> str:
        """Its version; empty where there is none. Errors: NodeFault."""

    @property
    def own_pids(self) -> bool:
        """Whether the processes that it names are counted as this worker's own are, and so can be looked at."""

    def use(self, gpu: Gpu) -> Use:
        """Errors: NodeFault."""

    def state(self, gpu: Gpu) -> State:
        """Errors: NodeFault."""


def free(gpu: Gpu, use: Use) -> bool:
    """Whether nothing worth mentioning lies in its memory."""
    return not use.pids and use.memory_bytes <= gpu.memory_bytes * OWN_SHARE


def told(held: Iterable[tuple[Gpu, Use]]) -> str:
    return "; ".join(f"GPU {gpu.index} is held by {_by(use)} outside firstbad" for gpu, use in held)


def _by(use: Use) -> str:
    known = " and ".join(map(process, use.pids))
    return known or f"something that the driver does not name ({use.memory_bytes // 1024**2} MiB)"


def process(pid: int) -> str:
    try:
        return f"pid {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:  # in another PID namespace, or gone
        return f"pid {pid}"


@dataclass(frozen=True)
class Declared:
    """Cards that are none (FIRSTBAD_GPUS). Who is said to hold one stands, as a pid, in the file held-<index>; what is
    said to throttle it in throttled-<index>, with commas; its clock in MHz and its temperature in clock-<index>."""

    inventory: tuple[Gpu, ...]
    folder: Path
    driver: str = ""
    own_pids: bool = True

    @classmethod
    def of(cls, models: Iterable[tuple[str, int]], folder: Path) -> Declared:
        """`models`: name and bytes of memory of each card."""
        gpus = (Gpu(index=n, model=name, memory_bytes=size) for n, (name, size) in enumerate(models))
        return cls(tuple(gpus), folder)

    def use(self, gpu: Gpu) -> Use:
        try:
            pid = int((self.folder / f"held-{gpu.index}").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return Use()
        return Use(gpu.memory_bytes, (pid,)) if psutil.pid_exists(pid) else Use()

    def state(self, gpu: Gpu) -> State:
        reasons = tuple(filter(None, map(str.strip, self._said(f"throttled-{gpu.index}").split(","))))
        numbers = [int(part) for part in self._said(f"clock-{gpu.index}").split() if part.isdigit()]
        clock, temperature = numbers if len(numbers) == 2 else (None, None)
        return State(clock, temperature, reasons)

    def _said(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError:
            return ""


class Nvml:
    """NVIDIA's, by its management library. A node without the driver has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def _nvml(self) -> Any:
        import pynvml

        with self._lock:
            try:
                pynvml.nvmlInit()
            except pynvml.NVMLError as error:
                log.info("no GPUs: %s", error)
                return None
        return pynvml

    @cached_property
    def inventory(self) -> tuple[Gpu, ...]:
        if self._nvml is None:
            return ()
        with self._faults():
            return tuple(self._gpu(index) for index in range(self._nvml.nvmlDeviceGetCount()))

    def _gpu(self, index: int) -> Gpu:
        handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        return Gpu(
            index=index,
            model=_text(self._nvml.nvmlDeviceGetName(handle)),
            memory_bytes=int(self._nvml.nvmlDeviceGetMemoryInfo(handle).total),
            uuid=_text(self._nvml.nvmlDeviceGetUUID(handle)),
        )

    @cached_property
    def driver(self) -> str:
        if self._nvml is None:
            return ""
        with self._faults():
            return _text(self._nvml.nvmlSystemGetDriverVersion())

    @property
    def own_pids(self) -> bool:
        """The driver counts as the node does, which a worker in a container of its own does not."""
        try:
            return PROC_NS.stat().st_ino == FIRST_PID_NS
        except OSError:
            return False

    def use(self, gpu: Gpu) -> Use:
        with self._faults():
            handle = self._nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            used = self._nvml.nvmlDeviceGetMemoryInfo(handle).used
        return Use(int(used), tuple(sorted({int(process.pid) for process in running})))

    def state(self, gpu: Gpu) -> State:
        nvml = self._nvml
        with self._faults():
            handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        reasons = self._told(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if reasons is None:  # a driver before release 535
            reasons = self._told(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return State(
            clock_mhz=self._told(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            temperature_c=self._told(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            throttled=reasons_of(reasons or 0),
        )

    def _told(self, asked: Any, *arguments: Any) -> int | None:
        """None for what this card, or its driver, does not tell."""
        try:
            return int(asked(*arguments))
        except self._nvml.NVMLError as error:
            log.debug("a card does not tell its state: %s", error)
            return None

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._nvml.NVMLError as error:
            advice = "See what nvidia-smi says on the node; take it out while a card is lost."
            raise NodeFault("device", f"the driver of the GPUs fails: {error}", advice) from error


def reasons_of(bits: int) -> tuple[str, ...]:
    """Why clocks are lower than they could be, in words."""
    return tuple(words for bit, words in REASONS.items() if bits & bit)


def _text(value: str | bytes) -> str:
    """Older releases of the library answer bytes."""
    return value.decode() if isinstance(value, bytes) else value
