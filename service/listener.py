"""The socket of the API, opened before anything is started that would answer there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address

#: What listens on all addresses is reached from this machine by these.
LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Taken(Exception):
    """Nobody can listen there; says why, and what to do."""


@contextmanager
def listening(host: IPv4Address | IPv6Address, port: int) -> Iterator[socket.socket]:
    """So a port in use is known at once, and 0 takes a free one. Errors: Taken."""
    with socket.socket(socket.AF_INET6 if host.version == 6 else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((str(host), port))
        except OSError as error:
            name = "another with --port" + ("" if host.is_loopback else ", or another address in FIRSTBAD_HOST")
            raise Taken(f"port {port} of {host}: {error.strerror}; name {name}") from None
        listener.listen(256)
        listener.set_inheritable(True)
        yield listener


def name_of(host: str) -> str:
    """As it stands in URLs and Host headers."""
    return f"[{host}]" if ":" in host else host


def url(listener: socket.socket) -> str:
    """By which it is reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://{name_of(LOCAL.get(host, host))}:{port}"
