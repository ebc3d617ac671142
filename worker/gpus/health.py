"""What a card's driver says of its state beside its clocks: who holds it, its errors, and how it is set."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.contract import Gpu
from worker.errors import NodeFault
from worker.gpus.cards import process

DEVICES = Path("/dev")
KERNEL_LOG = Path("/dev/kmsg")
#: Of NVIDIA's kernel module: "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
_XID = re.compile(rb"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+), ?([^\n]{0,120})")
#: More of the kernel's log is not read.
MOST_LINES = 20_000


@dataclass(frozen=True)
class Card:
    """`held`: by whom its memory is used now, and how much. None for what the card does not tell."""

    gpu: Gpu
    held: str = ""
    persistent: bool | None = None
    mig: bool | None = None
    uncorrected: int | None = None
    remap_failed: bool | None = None


@dataclass(frozen=True)
class Driver:
    """`missing`: why there is no driver's library; empty when there is. `devices`: whether the node has cards that a
    driver made files for."""

    version: str = ""
    missing: str = ""
    devices: bool = False
    cards: tuple[Card, ...] = ()


def driver() -> Driver:
    """Errors: NodeFault, when the driver fails."""
    import pynvml

    devices = any(DEVICES.glob("nvidia[0-9]*"))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Driver(missing=str(error), devices=devices)
    try:
        count = pynvml.nvmlDeviceGetCount()
        cards = tuple(_card(pynvml, index) for index in range(count))
        return Driver(_text(pynvml.nvmlSystemGetDriverVersion()), devices=devices, cards=cards)
    except pynvml.NVMLError as error:
        advice = "See what nvidia-smi says on the node; take it out while a card is lost."
        raise NodeFault("device", f"the driver of the GPUs fails: {error}", advice) from error
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _card(nvml: Any, index: int) -> Card:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    gpu = Gpu(
        index=index,
        model=_text(nvml.nvmlDeviceGetName(handle)),
        memory_bytes=int(memory.total),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
    )
    pids = sorted({int(each.pid) for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)})
    remapped = _told(nvml, nvml.nvmlDeviceGetRemappedRows, handle)
    mig = _told(nvml, nvml.nvmlDeviceGetMigMode, handle)
    persistent = _told(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)
    kinds = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    return Card(
        gpu,
        held=" and ".join(map(process, pids)),
        persistent=bool(persistent) if persistent is not None else None,
        mig=bool(mig[0]) if mig is not None else None,
        uncorrected=_told(nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, *kinds),
        remap_failed=bool(remapped[3]) if remapped is not None else None,
    )


def _told(nvml: Any, asked: Any, *arguments: Any) -> Any:
    """None for what this card, or its driver, does not tell."""
    try:
        return asked(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def xids(log: Path = KERNEL_LOG) -> tuple[str, ...]:
    """Errors of cards that the kernel's log still has, each kind once, the last ones last; none where it may not be
    read."""
    found: dict[str, None] = {}
    with contextlib.suppress(OSError):
        for line in _lines(log):
            if match := _XID.search(line):
                card, number, said = (part.decode("utf-8", "replace") for part in match.groups())
                found.setdefault(f"Xid {number} on {card}: {said.strip()}")
    return tuple(found)


def _lines(log: Path) -> Iterator[bytes]:
    """Errors: OSError."""
    handle = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for _ in range(MOST_LINES):
            # Of the kernel's log a read is one record, however long; of a file it is what fits.
            piece = os.read(handle, 8192)
            if not piece:
                return
            yield from piece.splitlines()
    except BlockingIOError:
        return
    finally:
        os.close(handle)
