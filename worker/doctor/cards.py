"""GPUs: which there are, who has them, and what they say of their health."""

from __future__ import annotations

from collections import Counter

from worker.doctor.finding import Findings, gib, ok, problem, warning
from worker.gpus.health import Card, driver, xids
from worker.settings import Settings, declared


def cards(settings: Settings) -> Findings:
    """Errors: NodeFault."""
    if settings.gpus:
        known = Counter(model for model, _ in declared(settings.gpus) or ())
        shown = ", ".join(f"{count} × {model}" for model, count in known.items()) or "none"
        advice = "Leave FIRSTBAD_GPUS empty, so that those count which the driver finds."
        if shown == "none":
            yield ok("gpus", "none, as FIRSTBAD_GPUS says")
        else:
            yield warning("gpus", f"declared (FIRSTBAD_GPUS), and so not looked at: {shown}", advice)
        return
    found = driver()
    if found.missing and found.devices:
        advice = (
            "Install the driver's library (libnvidia-ml.so.1) of the same version as the kernel's module, or reboot."
        )
        yield problem("gpus", f"there are cards, but their driver cannot be asked: {found.missing}", advice)
    elif found.missing:
        yield ok("gpus", f"no cards: {found.missing}")
    elif not found.cards:
        yield warning("gpus", f"driver {found.version}, and no card", "See what nvidia-smi -L says.")
    else:
        yield ok("gpus", f"driver {found.version}, {len(found.cards)} cards")
        for card in found.cards:
            yield from _card(card)
        yield from _errors()


def _card(card: Card) -> Findings:
    check, gpu = f"gpus.{card.gpu.index}", card.gpu
    name = f"{gpu.model}, {gib(gpu.memory_bytes)}"
    if card.remap_failed:
        advice = "Take the card out: its memory is broken beyond repair. nvidia-smi -q -d ROW_REMAPPER"
        yield problem(check, f"{name}: remapping rows of its memory failed", advice)
    elif card.uncorrected:
        advice = (
            f"Reset it when nobody uses it (nvidia-smi -r -i {gpu.index}); see nvidia-smi -q -d ECC if it comes again."
        )
        yield problem(
            check, f"{name}: {card.uncorrected} uncorrected memory errors since the driver was loaded", advice
        )
    elif card.mig:
        advice = f"nvidia-smi -i {gpu.index} -mig 0 where probes want whole cards: slices are not leased."
        yield warning(check, f"{name}: is in MIG mode", advice)
    elif card.held:
        yield warning(check, f"{name}: held by {card.held}", "Probes wait for it (FIRSTBAD_GPU_WAIT_S) or take others.")
    elif card.persistent is False:
        advice = "nvidia-smi -pm 1, or start nvidia-persistenced: each start of a run waits for the driver without."
        yield warning(check, f"{name}: persistence mode is off", advice)
    else:
        yield ok(check, f"{name}: free")


def _errors() -> Findings:
    found = xids()
    if found:
        advice = "Look the numbers up in NVIDIA's list of Xid errors; 48, 63, 64, 74, 79, 94, 95 mean a failing card."
        yield warning("gpus.errors", f"the kernel's log has {'; '.join(found[-3:])}", advice)
    else:
        yield ok("gpus.errors", "no Xid in what can be read of the kernel's log")
