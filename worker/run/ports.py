"""TCP ports for servers whose sandbox shares the node's network."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from worker.errors import NodeFault

_lock = threading.Lock()
_given: set[int] = set()


@contextlib.contextmanager
def one(wanted: int) -> Iterator[int]:
    """The wanted port, or another one when that is taken; no other run of this worker gets it meanwhile.

    Errors: NodeFault.
    """
    with _lock:
        port = next((port for port in _candidates(wanted) if port not in _given), None)
        if port is None:
            raise NodeFault("no-port", "no TCP port is free on this node", "Stop what holds them.")
        _given.add(port)
    try:
        yield port
    finally:
        with _lock:
            _given.discard(port)


def _candidates(wanted: int) -> Iterator[int]:
    for asked in (wanted, *[0] * 100):
        with contextlib.suppress(OSError), socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind(("127.0.0.1", asked))
            yield attempt.getsockname()[1]
