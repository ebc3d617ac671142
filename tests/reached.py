"""Which addresses tests may reach, and what names mean there."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network

from service.adapters import addresses
from service.adapters.addresses import Addresses

LOOPBACK = ip_network("127.0.0.0/8")


def loopback(names: Mapping[str, str] | None = None, **more: object) -> Addresses:
    """This machine may be reached. `names`: addresses of hosts that only a test has."""

    def resolve(host: str, port: int) -> tuple[str, ...]:
        return (names[host],) if names and host in names else addresses.resolve(host, port)

    return Addresses(**{"private": (LOOPBACK,), "resolve": resolve, **more})  # type: ignore[arg-type]
