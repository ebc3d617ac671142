"""Which hosts may be reached for others: by name, and by the addresses that the name has now.

Whoever connects takes one of the addresses that were checked, and asks for none again: a name may mean another one a
moment later.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], tuple[str, ...]]

#: Public by the registries, and yet of the machine's own surroundings: a cloud's metadata, 6to4 relays, documentation.
_NOT_PUBLIC: tuple[Network, ...] = (
    IPv4Network("168.63.129.16/32"),
    # Part of it counts as global, and a cloud's metadata are there.
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("3fff::/20"),
)
#: All that is given out to anybody.
_UNICAST = IPv6Network("2000::/3")
#: An IPv4 address stands in their last 32 bits.
_HOLD_IPV4 = (IPv6Network("::/96"), IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
#: Proxies that get names, and find their addresses themselves.
_RESOLVING = ("http", "https", "socks4a", "socks5h")


class NotReached(Exception):
    """`what`: as in "HOST … is …"; `advice`: what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what, self.advice = what, advice


class NotAHost(NotReached):
    """The name has no address now."""


def resolve(host: str, port: int) -> tuple[str, ...]:
    """Errors: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class Addresses:
    """`hosts`: patterns of their names, where * stands for anything; none is any. `private`: networks that may be
    reached though they are not public. `proxies`: by scheme, as the environment names them."""

    hosts: tuple[str, ...] = ()
    private: tuple[Network, ...] = ()
    resolve: Resolve = resolve
    proxies: Callable[[], Mapping[str, str]] = field(default=getproxies_environment)

    def name(self, host: str) -> str:
        """As it is compared. Errors: NotReached, by the name alone."""
        plain = host.lower().strip("[]")
        if plain.endswith("."):
            raise NotReached(f"the host {host!r} ends in a dot", "write it without")
        if self.hosts and not any(fnmatchcase(plain, pattern.lower()) for pattern in self.hosts):
            allowed = ", ".join(self.hosts)
            raise NotReached(
                f"the host {plain!r} is none of those allowed here",
                f"allowed: {allowed}; more is the operator's to allow, in FIRSTBAD_REPO_HOSTS",
            )
        if (literal := _literal(plain)) is not None:
            self._check(plain, literal)
        elif plain == "localhost" or plain.endswith(".localhost"):
            self._check(plain, IPv4Address("127.0.0.1"))
        return plain

    def of(self, host: str, port: int) -> tuple[str, ...]:
        """All of a host, each checked: to be connected to as they are. Errors: NotReached, NotAHost."""
        plain = self.name(host)
        try:
            found = self.resolve(plain, port)
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise NotAHost(f"the host {plain!r} cannot be found: {said}", "check the host name") from error
        if not found:
            raise NotAHost(f"the host {plain!r} has no address", "check the host name")
        for address in found:
            self._check(plain, ip_address(address.partition("%")[0]))
        return found

    def proxy(self, scheme: str, host: str, port: int) -> str | None:
        """The one that connections of this scheme go through."""
        proxies = dict(self.proxies())
        chosen = proxies.get(scheme) or proxies.get("all")
        if not chosen or proxy_bypass_environment(host, proxies) or proxy_bypass_environment(f"{host}:{port}", proxies):
            return None
        return chosen if "://" in chosen else f"http://{chosen}"

    def _check(self, host: str, address: Address) -> None:
        if is_public(address) or any(address in network for network in self.private):
            return
        inner = within(address)
        if inner is not None and any(inner in network for network in self.private):
            return
        shown = host if host == str(address) else f"{host}, which is {address},"
        raise NotReached(
            f"the host {shown} is in no public network",
            "give a host that is; a private network is the operator's to allow, in FIRSTBAD_PRIVATE_NETWORKS",
        )


def resolves_itself(proxy: str) -> bool:
    """Whether the proxy finds the addresses of names, so that we cannot check them."""
    return proxy.partition("://")[0].lower() in _RESOLVING


def is_public(address: Address) -> bool:
    """Whether it is given out to anybody, and what stands within it is too."""
    if isinstance(address, IPv6Address):
        if (inner := within(address)) is not None:
            # 6to4 and Teredo are tunnels that only somebody's own router leads through.
            return any(address in network for network in _HOLD_IPV4[1:]) and is_public(inner)
        if address not in _UNICAST:
            return False
    known = not any(address in network for network in _NOT_PUBLIC)
    return known and address.is_global and not address.is_multicast and not address.is_reserved


def within(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to."""
    if isinstance(address, IPv4Address):
        return None
    if any(address in network for network in _HOLD_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return address.teredo[1] if address.teredo is not None else None


def _literal(host: str) -> Address | None:
    """Also as in 127.1 and 0x7f000001, which resolvers take for addresses."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host.isascii() else None
    except OSError:
        return None
