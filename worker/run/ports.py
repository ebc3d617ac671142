"""TCP ports for servers whose sandbox shares the node's network."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import socket
import time
from collections.abc import Iterator

from worker.errors import NodeFault, fault_of
from worker.run.shared import shared_folder
from worker.run.stop import Stop

#: Seconds between two looks at a port that is not free yet, and those that a closed connection may hold one.
LOOK_S, LINGER_S = 0.2, 90.0
ADVICE = "Name another port, let command and check use $FIRSTBAD_PORT, or take `network: none`."


@contextlib.contextmanager
def one(wanted: int, stop: Stop, *, movable: bool, wait_s: float) -> Iterator[int]:
    """The wanted port; when that is taken, another one if the server and its check are `movable`, else a fault.

    No other run of this user on this node gets the port meanwhile; `wait_s`: how long to wait for such a run.
    Errors: NodeFault, also when something else answers on the port after the run; Stopped.
    """
    with contextlib.ExitStack() as stack:
        port = _another(wanted, stack) if movable else _same(wanted, stack, stop, wait_s)
        yield port
        if listening(port):
            raise _taken(port, "was taken by something else during the run")


def _same(port: int, stack: contextlib.ExitStack, stop: Stop, wait_s: float) -> int:
    end = time.monotonic() + wait_s
    while not _locked(port, stack):
        if time.monotonic() > end:
            raise _taken(port, f"is used by other runs for {wait_s:.0f} s")
        stop.pause(LOOK_S)
    end = time.monotonic() + LINGER_S
    while not _free(port):
        if listening(port) or time.monotonic() > end:
            raise _taken(port, "is taken by something else")
        # Closed connections of the run before: a server may be unable to listen until they are forgotten.
        stop.pause(LOOK_S)
    return port


def _another(wanted: int, stack: contextlib.ExitStack) -> int:
    for asked in (wanted, *[0] * 100):
        port = asked or _any()
        if _free(port) and _locked(port, stack):
            return port
    raise _taken(wanted, "is taken, as are the others that were tried")


def _locked(port: int, stack: contextlib.ExitStack) -> bool:
    """Whether the port's lock is ours now, until the stack ends."""
    folder = shared_folder("ports")
    try:
        file = (folder / str(port)).open("w")
    except OSError as error:
        raise fault_of(error, f"opening a lock in {folder}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    stack.enter_context(file)
    return True


def _any() -> int:
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])


def listening(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def _free(port: int) -> bool:
    """Whether every server could listen there, also one that does not ask to reuse the address."""
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family) as attempt:
                if family == socket.AF_INET6:
                    attempt.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                attempt.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
    return True


def _taken(port: int, why: str) -> NodeFault:
    return NodeFault("no-port", f"port {port} of this node {why}", ADVICE)
