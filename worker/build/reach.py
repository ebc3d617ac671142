"""How git on a node gets to a repository: by the service's rule (docs/policies.md), which a worker applies by itself.

Hosts and networks that the operator allows, and git connects to the address that was checked. No redirect is followed.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from worker.errors import NodeFault

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PORTS = {"https": 443, "git": 9418, "ssh": 22}
_SCP = re.compile(r"(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):[^:].*")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9a-f:.]+")
_USER = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=:-]*")
_NOT_PUBLIC = (
    IPv4Network("168.63.129.16/32"),
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("3fff::/20"),
)
_UNICAST = IPv6Network("2000::/3")
_HOLD_IPV4 = (IPv6Network("::/96"), IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
#: Proxies that find the addresses of names themselves.
_RESOLVING = ("http", "https", "socks4a", "socks5h")


def resolve(host: str, port: int) -> tuple[str, ...]:
    """Errors: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class Way:
    """`url`: for git. `config`: settings, and `environment`: variables, for this one command."""

    url: str
    config: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Nothing of it stands in arguments, which all of the machine may read."""
        found = {"GIT_CONFIG_COUNT": str(len(self.config)), **self.environment}
        for place, (key, value) in enumerate(self.config.items()):
            found |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
        return found


@dataclass(frozen=True)
class Reach:
    """`hosts`: patterns, none is any. `private`: networks that may be reached though they are not public."""

    hosts: tuple[str, ...] = ()
    private: tuple[Network, ...] = ()
    resolve: Callable[[str, int], tuple[str, ...]] = resolve

    def way(self, repo: str, ssh: str) -> Way:
        """`ssh`: the command that reaches ssh servers. Errors: NodeFault."""
        if (scp := _SCP.fullmatch(repo)) is not None and "://" not in repo:
            return self._ssh(repo, scp["host"].strip("[]"), None, ssh)
        try:
            parts = urlsplit(repo)
            scheme, host, port = parts.scheme.lower(), (parts.hostname or "").strip("[]"), parts.port
        except ValueError as error:
            raise _refused(f"it is no valid URL ({error})", "Give another URL.") from None
        if scheme not in _PORTS:
            return Way(repo)
        user = parts.netloc.rpartition("@")[0]
        if not _HOST.fullmatch(host) or not _USER.fullmatch(user):
            raise _refused(f"its host {host!r}, or its user, is not written as in a URL", "Give another URL.")
        if scheme == "ssh":
            return self._ssh(repo, host, port, ssh)
        bracketed, port = f"[{host}]" if ":" in host else host, port or _PORTS[scheme]
        place = bracketed if port == _PORTS[scheme] else f"{bracketed}:{port}"
        rest = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if scheme == "git":
            address = _bracketed(self._addresses(host, port)[0])
            return Way(f"git://{address}:{port}{rest}", environment={"GIT_OVERRIDE_VIRTUAL_HOST": place})
        config = {"http.followRedirects": "false", **self._pinned(host, port, bracketed)}
        url = f"https://{f'{user}@' if user else ''}{place}{rest}"
        return Way(url, config, {"NO_PROXY": "", "no_proxy": ""})

    def _pinned(self, host: str, port: int, bracketed: str) -> dict[str, str]:
        self._name(host)
        proxies = getproxies_environment()
        proxy = proxies.get("https") or proxies.get("all") or ""
        if proxy and (proxy_bypass_environment(host) or proxy_bypass_environment(f"{host}:{port}")):
            proxy = ""
        if proxy and (proxy.partition("://")[0].lower() in _RESOLVING or "://" not in proxy):
            return {"http.proxy": proxy}
        found = ",".join(map(_bracketed, self._addresses(host, port)))
        return {"http.curloptResolve": f"{bracketed}:{port}:{found}", "http.proxy": proxy}

    def _ssh(self, repo: str, host: str, port: int | None, ssh: str) -> Way:
        self._name(host)
        told = _ssh_settings(host, port, ssh)
        if any(told.get(name, "none") != "none" for name in ("proxyjump", "proxycommand")):
            return Way(repo)
        real, at = told.get("hostname", host), int(told.get("port", port or _PORTS["ssh"]))
        alias = told.get("hostkeyalias") or (real if at == _PORTS["ssh"] else f"[{real}]:{at}")
        address = self._addresses(real, at)[0]
        options = (f"HostName={address}", f"HostKeyAlias={alias}", "CheckHostIP=no", "ProxyCommand=none")
        command = " ".join([ssh, *(f"-o {shlex.quote(option)}" for option in options)])
        return Way(repo, environment={"GIT_SSH_COMMAND": command})

    def _name(self, host: str) -> None:
        plain = host.lower()
        if plain.endswith(".") or (self.hosts and not any(fnmatchcase(plain, one.lower()) for one in self.hosts)):
            advice = "FIRSTBAD_REPO_HOSTS on the node says which hosts are."
            raise _refused(f"the host {plain!r} is none of those allowed on this node", advice)
        literal = _literal(plain)
        if literal is not None or plain == "localhost" or plain.endswith(".localhost"):
            self._check(plain, literal or IPv4Address("127.0.0.1"))

    def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        self._name(host)
        try:
            found = self.resolve(host.lower(), port)
        except (OSError, UnicodeError) as error:
            raise NodeFault("source", f"the host {host!r} cannot be found: {error}", "Check the node's DNS.") from error
        for address in found:
            self._check(host, ip_address(address.partition("%")[0]))
        return found

    def _check(self, host: str, address: Address) -> None:
        also = (address, *((inner,) if (inner := within(address)) is not None else ()))
        if not is_public(address) and not any(one in network for one in also for network in self.private):
            advice = "FIRSTBAD_PRIVATE_NETWORKS on the node says which private networks may be reached."
            raise _refused(f"the host {host!r}, which is {address}, is in no public network", advice)


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if (inner := within(address)) is not None:
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
    return address.sixtofour or (address.teredo[1] if address.teredo is not None else None)


def _literal(host: str) -> Address | None:
    """Also as in 127.1 and 0x7f000001, which resolvers take for addresses."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host.isascii() else None
    except OSError:
        return None


def _ssh_settings(host: str, port: int | None, ssh: str) -> dict[str, str]:
    """As the node's ssh settings have it for this host; nothing where the client does not tell."""
    command = [*shlex.split(ssh), "-G", *(("-p", str(port)) if port is not None else ()), "--", host]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.partition(" ") for line in done.stdout.splitlines()) if done.returncode == 0 else ()
    found = {name: value for name, _, value in pairs if value}
    return found if found.get("port", "").isdigit() and found.get("hostname") else {}


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _refused(what: str, advice: str) -> NodeFault:
    return NodeFault("order", f"the repository is refused: {what}", advice)
