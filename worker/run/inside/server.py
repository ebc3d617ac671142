# ruff: noqa: UP031, SIM105 (see __init__)
"""A server under test: started, awaited, checked, stopped."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import select
import time

from .processes import Fault, TimedOut, kill, split
from .warmup import warmed_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as sockets
    from typing import Any

    from .processes import Run, Status

TERM_S = 10.0
ANSWER_S = 5.0
DONE = (0, None)
#: What a check may take when its server has died, to say what is missing.
LOST_S = 10.0


def serve(run: Run, shell: list[str], cwd: str) -> Status:
    """The exit status and signal of the server when it dies first, else of the check.

    Errors: TimedOut, also when the server is not ready in time; Fault, when its port is taken.
    """
    spec = run.order["serve"]
    port = spec["port"]
    run.facts["port"] = str(port)
    run.env.update(FIRSTBAD_PORT=str(port), FIRSTBAD_URL="http://127.0.0.1:%d" % port)
    if listening(port):
        raise Fault("no-port", "port %d is taken by something else" % port, "Name another port, or `network: none`.")
    run.enter("start")
    run.ready = False
    server = run.spawn([*shell, "-c", spec["command"]], cwd)
    if not wait_ready(run, spec, port, server):
        return split(run.status[server])
    run.ready = True
    status: Status = (None, None)
    if run.order.get("check"):
        argv = [*shell, "-c", run.order["check"]]
        status = warmed_up(run, "check", lambda: check(run, argv, cwd, server))
        if server in run.status:
            run.facts["server_ended"] = "exit status %s, signal %s" % split(run.status[server])
    run.leave()
    stop(run, server)
    return status


def check(run: Run, argv: list[str], cwd: str, server: int) -> Status:
    """Its exit status and signal; the server's, when that died of something and the check waits for it for ever.

    Errors: TimedOut.
    """
    pid = run.begin(argv, cwd, run.voice)
    run.wait(lambda: pid in run.status or died(run, server), run.deadline)
    if run.wait(lambda: pid in run.status, time.monotonic() + LOST_S if died(run, server) else run.deadline):
        return split(run.status[pid])
    run.say("the server has died, and the check did not end within %d s after it" % LOST_S)
    kill(pid, signal.SIGKILL, group=True)
    return split(run.status[server])


def died(run: Run, server: int) -> bool:
    """Neither on its own account nor because the check told it to."""
    status = split(run.status[server]) if server in run.status else DONE
    return status not in (DONE, (None, signal.SIGTERM), (128 + signal.SIGTERM, None))


def listening(port: int) -> bool:
    """Whether there is an answer that would be taken for the server's."""
    import socket

    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def wait_ready(run: Run, spec: dict[str, Any], port: int, server: int) -> bool:
    """False when the server ended instead. Errors: TimedOut."""
    ready = Ready(run, spec, port)
    try:
        run.wait(lambda: ready.reached() or server in run.status, time.monotonic() + spec["within_s"], ready.tick)
        if server in run.status:
            return False
        if not ready.reached():
            raise TimedOut
        return True
    finally:
        ready.close()
        if run.phase == "start" and server not in run.status:
            run.enter("ready")


def stop(run: Run, server: int) -> None:
    """SIGTERM to the server's group, SIGKILL after TERM_S; what is left of it is killed with the sandbox."""
    for number, seconds in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, 1.0)):
        try:
            if not kill(server, number, group=True):
                return
            if run.wait(lambda: server in run.status, time.monotonic() + seconds):
                return
        except TimedOut:
            return


class Ready:
    """Ready when the line was seen and the path answered 200, as far as each is asked for."""

    def __init__(self, run: Run, spec: dict[str, Any], port: int) -> None:
        self.run, self.path, self.port = run, spec.get("ready_http"), port
        self.line_seen = not spec.get("ready_log")
        self.answered = not self.path
        self.pause, self.again = 0.02, 0.0
        self.socket: sockets.socket | None = None
        self.asked, self.got = 0.0, b""
        if not self.line_seen:
            self.expect(spec["ready_log"].encode("utf-8", "replace"))

    def expect(self, wanted: bytes) -> None:
        """A line that holds the text, or that the regular expression finds."""
        import re

        try:
            pattern = re.compile(wanted)
        except re.error:
            pattern = re.compile(re.escape(wanted))

        def watch(line: bytes) -> None:
            if wanted in line or pattern.search(line):
                self.line_seen, self.run.log.watch = True, None
            elif self.run.phase == "start":
                self.run.enter("ready")

        self.run.log.watch = watch

    def reached(self) -> bool:
        return self.line_seen and self.answered

    def tick(self) -> float:
        """Asks the server when it is time to; seconds until it should be called again."""
        if self.answered:
            return 60.0
        if self.socket is not None and self.answer():
            self.answered = True
            return 0.0
        now = time.monotonic()
        if self.socket is None and now >= self.again:
            self.ask()
            self.again = now + self.pause
            self.pause = min(self.pause * 1.1, 0.5)
        return 1.0 if self.socket is not None else max(self.again - now, 0.005)

    def ask(self) -> None:
        import socket

        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 1.0)
            if self.run.phase == "start":
                self.run.enter("ready")
            host = "Host: 127.0.0.1:%d\r\nConnection: close" % self.port
            self.socket.sendall(("GET %s HTTP/1.1\r\n%s\r\n\r\n" % (self.path, host)).encode())
            self.socket.setblocking(False)
            self.run.poll.register(self.socket, select.POLLIN)
            self.asked = time.monotonic()
        except OSError:
            self.hang_up()

    def answer(self) -> bool:
        assert self.socket is not None
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            if time.monotonic() - self.asked > ANSWER_S:
                self.hang_up()
            return False
        except OSError:
            data = b""
        got = self.got = self.got + data
        if data and b"\n" not in got and len(got) < 65536:
            return False
        self.hang_up()
        words = got.split(None, 2)
        return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1] == b"200"

    def hang_up(self) -> None:
        if self.socket is not None:
            try:
                self.run.poll.unregister(self.socket)
            except KeyError:
                pass  # it never came to that
            self.socket.close()
        self.socket, self.got = None, b""

    def close(self) -> None:
        self.run.log.watch = None
        self.hang_up()
