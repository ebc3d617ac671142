"""Runs a probe's script under a keeper, which leaves nothing of it when it ends, nor when we do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

KEEPER = Path(__file__).with_name("keeper.py")
#: By this variable what a probe left is known again, were even its keeper killed.
MARK = "FIRSTBAD_PROBE"
#: Where the system counts the processes that it killed for want of memory.
_VMSTAT = Path("/proc/vmstat")


class Stopped(Exception):
    """Nobody wants the answer any more."""


class NotStarted(Exception):
    """The machine's doing: nothing could be started."""


@dataclass(frozen=True)
class Order:
    """`cleanup`: a command that ends what the keeper's own kill does not reach, as a container."""

    command: Sequence[str]
    cwd: Path
    log: Path
    cap_bytes: int
    mark: str
    timeout_s: float | None = None
    cleanup: Sequence[str] = ()
    held: Sequence[int] = field(default=())


@dataclass(frozen=True)
class Ran:
    """`exit_status` or `signal`; neither where even the keeper was killed. `left`: processes that were killed after."""

    exit_status: int | None
    signal: int | None
    timed_out: bool
    out_of_memory: bool
    left: int


class Stop:
    """The button of one probe; pressed from any thread, also before there is anything to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pressed = False
        self._process: subprocess.Popen[bytes] | None = None

    def press(self) -> None:
        with self._lock:
            self._pressed = True
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()

    def check(self) -> None:
        """Errors: Stopped."""
        if self._pressed:
            raise Stopped

    @contextlib.contextmanager
    def ending(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        with self._lock:
            self._process = process
            pressed = self._pressed
        if pressed:
            self.press()
        try:
            yield
        finally:
            with self._lock:
                self._process = None


def run(order: Order, stop: Stop) -> Ran:
    """Errors: Stopped; NotStarted."""
    stop.check()
    killed_before = _killed_for_memory()
    told = _kept(order, stop)
    stop.check()
    if "error" in told:
        raise NotStarted(str(told["error"]))
    status = told.get("status")
    code = os.waitstatus_to_exitcode(status) if status is not None else None
    died = -code if code is not None and code < 0 else None
    by_kill = died == signal.SIGKILL or code == 128 + signal.SIGKILL
    timed_out = told.get("ended") == "time"
    return Ran(
        exit_status=code if died is None and not timed_out else None,
        signal=died if not timed_out else None,
        timed_out=timed_out,
        out_of_memory=by_kill and not timed_out and _killed_for_memory() > killed_before,
        left=int(told.get("left", 0)),
    )


def _kept(order: Order, stop: Stop) -> dict[str, Any]:
    """What the keeper told; nothing where the script killed it."""
    told = {"command": [*order.command], "cwd": str(order.cwd), "log": str(order.log), "cap_bytes": order.cap_bytes,
            "timeout_s": order.timeout_s, "cleanup": [*order.cleanup]}  # fmt: skip
    try:
        process = subprocess.Popen(
            ["env", f"{MARK}={order.mark}", sys.executable, "-I", "-S", str(KEEPER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=tuple(order.held),
        )
    except OSError as error:
        raise NotStarted(f"no process could be started: {error.strerror}") from None
    assert process.stdin is not None and process.stdout is not None
    with process.stdout:
        # A stop may close it first, and the script may have killed the keeper already.
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(json.dumps(told).encode("utf-8", "surrogateescape") + b"\n")
            process.stdin.flush()
        with stop.ending(process):
            line = process.stdout.readline()
            process.wait()
    with contextlib.suppress(OSError):
        process.stdin.close()
    if not line:
        kill_marked(order.mark)
        return {}
    found: dict[str, Any] = json.loads(line)
    return found


def kill_marked(mark: str) -> None:
    """All processes that were started for this probe and still say so."""
    while found := [process for process in psutil.process_iter() if _environment(process).get(MARK) == mark]:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=5)
        if all(process.is_running() for process in found):
            return


def _environment(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ() if process.pid != os.getpid() else {}
    except (psutil.Error, OSError):
        return {}


def _killed_for_memory() -> int:
    """By the system, since it was started; 0 where it does not count."""
    try:
        lines = _VMSTAT.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
