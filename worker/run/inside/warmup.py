# ruff: noqa: UP031 (see __init__)
"""The script or the check, run some times before the time that counts."""

from __future__ import annotations

from .voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .processes import Run, Status

DONE = (0, None)
#: A phase that no run ends in: it ends in what was run.
PHASE = "warmup"
#: Of the pipe so many pieces are read before a line of ours, so that it stands behind what was said before it.
PIECES = 32


def warmed_up(run: Run, phase: str, once: Callable[[], Status]) -> Status:
    """Does it as often as the order wants, and then once more, which counts: the status of that, or of the first that
    failed. What is told and measured is that one's too.

    Errors: TimedOut.
    """
    voice, count = run.voice, run.order.get("warmup") or 0
    if count:
        run.enter(PHASE)
    for number in range(1, count + 1):
        mark(run, "warm-up %d of %d" % (number, count))
        run.voice = Voice()
        status = once()
        if status != DONE:
            mark(run, "the warm-up failed, and the run ends with it")
            return status
    if count:
        mark(run, "after %d for warm-up, the run that counts" % count)
    run.voice = voice
    run.enter(phase)
    return once()


def mark(run: Run, text: str) -> None:
    for _ in range(PIECES):
        before = run.log.total
        run.turn(0)
        if run.log.total == before:
            break
    if run.log.open:
        run.log.add(b"\n")
    run.say(text)


def ended_in(run: Run) -> str:
    if run.phase != PHASE:
        return run.phase
    return "script" if run.order.get("script") is not None else "check"
