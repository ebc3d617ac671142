# ruff: noqa: PTH112, PTH118, PTH123, PTH208, SIM105, UP031, TID251 (see __init__)
"""The processes of one run, their one output and its phases, in one thread around one poll()."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import fcntl
import os
import select
import time

from .log import LINE, Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .hidden import Forms, Hider
    from .provenance import Package
    from .voice import Voice

    Status = tuple[int | None, int | None]  # exit status, signal

DRAIN_S = 2.0
QUIET_S = 0.25

#: Processes started here, each the leader of a session of its own.
started: list[int] = []


class TimedOut(Exception):
    """The run took longer than it may."""


class Fault(Exception):
    """The node's doing: kind, message, advice."""


class Run:
    def __init__(self, order: dict[str, Any], out: str, secrets: dict[str, str], hidden: Forms) -> None:
        """`secrets`: variables of the reproduction alone; `hidden`: what nothing that it writes may show."""
        self.order, self.secrets, self.hidden = order, secrets, hidden
        self.began, self.zero = time.time(), time.monotonic()
        self.deadline: float = self.zero + order["timeout_s"]
        self.env: dict[str, str] = dict(order["env"])
        self.log = Log(out, order["log_cap_bytes"], order.get("failure"))
        self.phase = "start"
        self.phases: list[dict[str, Any]] = []
        self.facts: dict[str, str] = {}
        self.installed: dict[str, str] = {}
        self.voice: Voice | None = None
        self.package: Package | None = None
        self.ready: bool | None = None
        self.status: dict[int, int] = {}
        self.null = os.open(os.devnull, os.O_RDONLY)
        self.poll = select.poll()
        # Pipes by who speaks there: the script or the check, or, as None, all the others.
        self.speakers: dict[int, Voice | None] = {}
        self.hiders: dict[int, Hider] = {}
        self.writer = self.pipe(None)
        self.spoke = next(iter(self.speakers))
        self.listen(order)

    def listen(self, order: dict[str, Any]) -> None:
        """Signals, and the end of the worker, come in by poll() too."""
        self.woken, waker = os.pipe()
        for handle in (self.woken, waker):
            os.set_blocking(handle, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Process 1 is sent neither by us, and what it does not handle, nobody inside can do to it.
        handler = signal.SIG_DFL if os.getpid() == 1 else lambda *_: abandon()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handler)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self.poll.register(self.woken, select.POLLIN)
        if order.get("watch_parent"):
            self.poll.register(0, select.POLLIN)

    def pipe(self, voice: Voice | None) -> int:
        """The end of a new one into which is spoken."""
        reader, writer = output_pipe()
        self.speakers[reader] = voice
        self.poll.register(reader, select.POLLIN)
        if self.hidden:
            from .hidden import Hider

            self.hiders[reader] = Hider(self.hidden)
        return writer

    def enter(self, name: str) -> None:
        """Begins a phase, which ends the one before it."""
        self.leave()
        self.phase = name
        self.phases.append({"name": name, "at_s": time.monotonic() - self.zero, "seconds": None})

    def leave(self) -> None:
        if self.phases and self.phases[-1]["seconds"] is None:
            self.phases[-1]["seconds"] = time.monotonic() - self.zero - self.phases[-1]["at_s"]

    def spawn(self, argv: list[str], cwd: str, output: int | None = None) -> int:
        """`output`: where it writes, if not where all the others do."""
        output = self.writer if output is None else output
        pid = os.fork()
        if pid:
            started.append(pid)
            return pid
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            for target, source in enumerate((self.null, output, output)):
                os.dup2(source, target)
            first_for_the_killer()
            os.chdir(cwd)
            os.execve(argv[0], argv, self.env)
        except OSError as error:
            os.write(2, b"firstbad: cannot run %s: %s\n" % (os.fsencode(argv[0]), str(error).encode()))
        finally:
            os._exit(127)

    def wait(self, done: Callable[[], bool], until: float, tick: Callable[[], float] | None = None) -> bool:
        """Handles output and ended children until it is done. False when `until` came first.

        `tick` is called each turn and says when to call it again. Errors: TimedOut, at the run's own deadline.
        """
        while not done():
            now = time.monotonic()
            if now >= self.deadline:
                raise TimedOut
            if now >= until:
                return False
            pause = min(until - now, self.deadline - now, tick() if tick else 60.0)
            self.turn(pause)
        return True

    def turn(self, pause: float) -> bool:
        """Reads what there is, after at most `pause` seconds. True when all output has ended: no one holds a pipe."""
        for handle, _ in self.poll.poll(max(min(pause, self.log.due()), 0.0) * 1000 + 0.5):
            if handle in self.speakers:
                self.read(handle)
            elif handle == self.woken:
                os.read(self.woken, 4096)
                self.reap()
            elif handle == 0:
                abandon()
        if self.log.due() <= 0:
            self.log.flush()
        return not self.speakers

    def read(self, handle: int) -> None:
        try:
            data = os.read(handle, LINE)
        except BlockingIOError:
            return
        hider = self.hiders.get(handle)
        for piece in hider.feed(data) if hider is not None else [data]:
            if piece:
                self.hear(handle, piece)
        if not data:
            self.poll.unregister(handle)
            del self.speakers[handle]
            os.close(handle)

    def hear(self, handle: int, data: bytes) -> None:
        if handle != self.spoke and self.log.open:
            self.log.add(b"\n")  # a line is of one speaker
        self.spoke = handle
        self.log.add(data)
        voice = self.speakers[handle]
        if voice is not None:
            voice.hear(data)

    def reap(self) -> None:
        """Also of orphans, whose parent is process 1, or the subreaper."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.status[pid] = status

    def call(self, argv: list[str], cwd: str, voice: Voice | None = None) -> Status:
        """Runs it to its end. Errors: TimedOut."""
        pid = self.begin(argv, cwd, voice)
        self.wait(lambda: pid in self.status, self.deadline)
        return split(self.status[pid])

    def begin(self, argv: list[str], cwd: str, voice: Voice | None = None) -> int:
        """Its process. `voice`: hears what it writes, which goes into the log too."""
        output = self.pipe(voice) if voice is not None else None
        pid = self.spawn(argv, cwd, output)
        if output is not None:
            os.close(output)
        import json  # noqa: F401 (the outcome will need it, and now there is time)

        return pid

    def say(self, text: str) -> None:
        """In the log, after what was written so far."""
        self.turn(0)
        self.log.add(b"firstbad: %s\n" % text.encode())

    def drain(self) -> None:
        """Reads what is still on its way, at most DRAIN_S; then kills what is left and ends the log."""
        os.close(self.writer)
        end = time.monotonic() + DRAIN_S
        quiet, killed = time.monotonic() + QUIET_S, False
        while time.monotonic() < end:
            before = self.log.total
            if self.turn(min(quiet, end) - time.monotonic()):
                break
            if self.log.total > before and not killed:
                quiet = time.monotonic() + QUIET_S
            elif time.monotonic() >= quiet:
                if killed:
                    break
                kill_all()
                quiet, killed = end, True
        kill_all()
        for handle in self.speakers:
            for piece in self.hiders[handle].feed(b"") if handle in self.hiders else ():
                self.hear(handle, piece)
        self.log.close()


def tool(name: str, path: str) -> str | None:
    for folder in path.split(":"):
        found = os.path.join(folder, name)
        if folder and os.access(found, os.X_OK) and not os.path.isdir(found):
            return found
    return None


def output_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        fcntl.fcntl(writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1024 * 1024)
    except OSError:
        pass  # not Linux, or the user's share of pipe memory is used up: a small pipe works too
    return reader, writer


def first_for_the_killer() -> None:
    """When memory runs out the kernel shall take the reproduction, not us who tell of it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def split(status: int) -> Status:
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)


def abandon() -> NoReturn:
    """Ends everything without an outcome: nobody waits for it any more."""
    kill_all()
    os._exit(143)


def kill(pid: int, number: int, *, group: bool = False) -> bool:
    try:
        os.killpg(pid, number) if group else os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_all() -> None:
    """Ends every other process of the sandbox: of the PID namespace, else our sessions and all our descendants."""
    if os.getpid() == 1:
        kill(-1, signal.SIGKILL)
        return
    for leader in started:
        kill(leader, signal.SIGKILL, group=True)
    for _ in range(100):
        found = descendants()
        for pid in found:
            kill(pid, signal.SIGKILL)
        if not found:
            return
        reap_zombies()


def reap_zombies() -> None:
    """Waits for one child, which was killed, and takes those that ended with it."""
    option = 0
    while True:
        try:
            if os.waitpid(-1, option)[0] == 0:
                return
        except ChildProcessError:
            return
        option = os.WNOHANG


def descendants() -> list[int]:
    """All living processes below this one; none where there is no /proc."""
    try:
        parents = {int(name): parent_of(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return []
    found: list[int] = []
    new = [os.getpid()]
    while new:
        new = [pid for pid, parent in parents.items() if parent in new and pid not in found]
        found += new
    return found


def parent_of(pid: str) -> int:
    """0 for a process that is gone."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
