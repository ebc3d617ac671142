"""One run, in a process of its own to which all orphans fall: `python -m tests.chaos.one MATERIAL FOLDER SEED [ONLY]`.

Prints what came of it as a line of JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import sys
import threading
import traceback
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic

import psutil

from tests.chaos import checks
from tests.chaos.cancels import Small, broker, cancels
from tests.chaos.faults import DONE_BY
from tests.chaos.material import IMAGE, Material
from tests.chaos.plan import Moment, Plan, planned
from tests.chaos.stack import Stack, alone, patiently

#: A bisection is given so long after the last fault.
PATIENCE_S = 240.0
#: Between two looks for orphans that have ended.
REAP_S = 0.3
_SUBREAPER = 36
BESIDE = {"cancels": cancels, "broker": broker}


@dataclass
class Result:
    """`faults`: which, from when to when in seconds since the submission, and how. `wrong`: empty when all is well."""

    seed: int
    plan: str
    seconds: float = 0.0
    faults: list[tuple[str, float, float, str]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    outcome: str = "right"
    wrong: list[str] = field(default_factory=list)


class Run:
    def __init__(self, stack: Stack, plan: Plan, result: Result) -> None:
        self.stack, self.plan, self.result = stack, plan, result
        self.small = Small()
        self._ended, self._pause = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._doing: list[Moment] = []

    def run(self) -> None:
        with self.stack.client() as client:
            self.id = str(patiently(lambda: client.submit(self._document())).id)
        self._began = monotonic()
        threads = [threading.Thread(target=self._at, args=(moment,), daemon=True) for moment in self.plan.moments]
        for thread in threads:
            thread.start()
        ended = self._awaited(threads)
        self.result.seconds = round(monotonic() - self._began, 1)
        if not ended:
            self.result.outcome = "hung"
            self.result.wrong.append(
                f"{self.stack.books.live()} bisections go on {PATIENCE_S:.0f} s after the last fault"
            )
            return
        for outcome, found in (
            ("wrong", checks.answers(self.stack, self.id, self.small)),
            ("twice", checks.counted_once(self.stack)),
            ("left", checks.left_behind(self.stack)),
        ):
            self.note(outcome, found)

    def note(self, outcome: str, found: list[str]) -> None:
        if found:
            self.result.wrong += found
            self.result.outcome = outcome if self.result.outcome == "right" else self.result.outcome

    def _document(self) -> dict[str, object]:
        document = self.stack.material.request(self.plan.good, self.plan.bad)
        document |= {"width": self.plan.width, "sandbox": self.plan.sandbox}
        document |= {"image": IMAGE} if self.plan.sandbox == "docker" else {}
        return document | ({"resources": {"gpus": 1}} if self.plan.gpus else {})

    def _awaited(self, threads: list[threading.Thread]) -> bool:
        """Until all bisections have ended, and all faults are over; false when that takes too long."""
        last = monotonic()
        while True:
            if not self.stack.books.live():
                self._ended.set()
                if not any(thread.is_alive() for thread in threads) and not self.stack.books.live():
                    return True
            if self._doing:
                last = monotonic()
            if monotonic() - last > PATIENCE_S:
                return False
            self._pause.wait(0.5)

    def _at(self, moment: Moment) -> None:
        while self.stack.books.verdicts() < moment.after and not self._ended.is_set():
            self._pause.wait(0.5)
        self._pause.wait(moment.delay_s)
        if self._ended.is_set():
            self.result.missed.append(moment.fault)
            return
        since, dice = monotonic() - self._began, random.Random(moment.dice)
        self._doing.append(moment)
        try:
            if moment.fault in BESIDE:
                how = BESIDE[moment.fault](self.stack, dice, self.small)
            else:
                how = DONE_BY[moment.fault](self.stack, dice)
        except Exception:  # noqa: BLE001
            with self._lock:
                self.result.outcome = "suite"
                self.result.wrong.append(traceback.format_exc())
            return
        finally:
            self._doing.remove(moment)
        with self._lock:
            self.result.faults.append((moment.fault, round(since, 1), round(monotonic() - self._began, 1), how))


def _reap(stack: Stack) -> None:
    """As init does: what nobody waits for would else look as if it ran, and hold its control group.

    Whoever started a process here waits for it at once; orphans are still there at the second look.
    """
    seen: set[int] = set()
    while not stack.over.is_set():
        parts = {part.pid for part in tuple(stack.parts.values())}
        found = {child.pid for child in psutil.Process().children() if _ended(child)} - parts
        for pid in found & seen:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        seen = found - seen
        stack.over.wait(REAP_S)


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def one(material: Material, folder: Path, plan: Plan) -> Result:
    """Never raises: what goes wrong is the result."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    result = Result(plan.seed, plan.told())
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    with ExitStack() as held:
        if plan.sandbox == "docker":
            held.enter_context(alone(material.folder / "engine.lock"))
        stack = Stack(folder, material, plan)
        run = Run(stack, plan, result)
        threading.Thread(target=_reap, args=(stack,), daemon=True).start()
        try:
            stack.start()
            run.run()
        except (Exception, AssertionError):  # noqa: BLE001
            run.note("suite", [traceback.format_exc()])
        try:
            if result.wrong:
                (folder / "books.jsonl").write_text(stack.books.dump())
        finally:
            stack.stop()
        run.note("left", [*stack.troubles, *checks.orphans(), *checks.outside(stack)])
        stack.unmount()
    return result


def main() -> int:
    material, folder, seed, *more = sys.argv[1:]
    plan = planned(int(seed), next((word for word in more if word != "--quick"), None), "--quick" in more)
    result = one(Material(Path(material)), Path(folder), plan)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
