"""How git gets to a repository: at an address that was checked, by one transport, without redirects.

https: curl is given the addresses. git: the address stands in the URL, and the name goes with the request. ssh: OpenSSH
is told the address to connect to, and whose key the host must have. Where a proxy finds the address, or an operator's
ssh settings lead through another host, only the name is checked here.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from service.adapters import checked_http, repository_address
from service.adapters.addresses import Addresses, NotAHost, NotReached, resolves_itself
from service.adapters.git_command import Reach
from service.adapters.git_errors import unavailable
from service.domain.errors import RepositoryUnavailable

_PORTS = {"https": 443, "git": 9418, "ssh": 22}
#: The rest stands as %XX, so that nobody reads another host out of it.
_USER = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=:-]*")
_SSH_LIMIT_S = 10.0
_LOOK_LIMIT_S = 10.0
_ADVERTISED = "/info/refs?service=git-upload-pack"


@dataclass(frozen=True)
class Remote:
    """`host`: without brackets. `user`: with a password, as it stands in the URL."""

    scheme: str
    host: str
    port: int
    user: str = ""
    path: str = ""

    @property
    def bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def place(self) -> str:
        return self.bracketed if self.port == _PORTS[self.scheme] else f"{self.bracketed}:{self.port}"


def named(repo: str, addresses: Addresses) -> None:
    """What can be said without a look at the network. Errors: RepositoryUnavailable."""
    remote = _remote(repo)
    if remote is not None:
        try:
            addresses.name(remote.host)
        except NotReached as error:
            raise _refused(repo, error) from None


def reach(repo: str, addresses: Addresses, ssh: str = "ssh") -> Reach:
    """Of an address that `repository_address.check` let through. Errors: RepositoryUnavailable."""
    remote = _remote(repo)
    if remote is None:
        return Reach(repo, "file")
    try:
        addresses.name(remote.host)
        how = {"https": _https, "git": _git}.get(remote.scheme)
        return how(remote, addresses) if how is not None else _ssh(repo, remote, addresses, ssh)
    except NotReached as error:
        raise _refused(repo, error) from None


def leads_to(repo: str, addresses: Addresses) -> str:
    """Where a repository over https that has moved says that it is now; empty when it does not."""
    remote = _remote(repo)
    if remote is None or remote.scheme != "https" or remote.user:
        return ""
    path = f"{remote.path.rstrip('/')}{_ADVERTISED}"
    try:
        answer = checked_http.request("GET", f"https://{remote.place}{path}", addresses, limit_s=_LOOK_LIMIT_S)
    except checked_http.NoAnswer:
        return ""
    to = repository_address.shown(urljoin(f"https://{remote.place}{path}", answer.location)[:500])
    return to.removesuffix(_ADVERTISED) if answer.location.isprintable() and to.endswith(_ADVERTISED) else ""


def _https(remote: Remote, addresses: Addresses) -> Reach:
    user = f"{remote.user}@" if remote.user else ""
    url = f"https://{user}{remote.place}{remote.path}"
    config = {"http.followRedirects": "false"}
    proxy = addresses.proxy("https", remote.host, remote.port)
    if proxy is not None and resolves_itself(proxy):
        # It decides alone; and what is said to go past it must not.
        return Reach(url, "https", {**config, "http.proxy": proxy}, {"NO_PROXY": "", "no_proxy": ""})
    found = ",".join(f"[{one}]" if ":" in one else one for one in addresses.of(remote.host, remote.port))
    pinned = {"http.curloptResolve": f"{remote.bracketed}:{remote.port}:{found}", "http.proxy": proxy or ""}
    return Reach(url, "https", {**config, **pinned}, {"NO_PROXY": "", "no_proxy": ""})


def _git(remote: Remote, addresses: Addresses) -> Reach:
    address = addresses.of(remote.host, remote.port)[0]
    bracketed = f"[{address}]" if ":" in address else address
    url = f"git://{bracketed}:{remote.port}{remote.path}"
    return Reach(url, "git", environment={"GIT_OVERRIDE_VIRTUAL_HOST": remote.place})


def _ssh(repo: str, remote: Remote, addresses: Addresses, ssh: str) -> Reach:
    told = _ssh_settings(remote, ssh)
    if any(told.get(name, "none") != "none" for name in ("proxyjump", "proxycommand")):
        return Reach(repo, "ssh")
    host, port = told.get("hostname", remote.host), int(told.get("port", remote.port))
    address = addresses.of(host, port)[0]
    alias = told.get("hostkeyalias") or (host if port == _PORTS["ssh"] else f"[{host}]:{port}")
    options = (f"HostName={address}", f"HostKeyAlias={alias}", "CheckHostIP=no", "ProxyCommand=none")
    return Reach(repo, "ssh", ssh=" ".join(f"-o {shlex.quote(option)}" for option in options))


def _ssh_settings(remote: Remote, ssh: str) -> dict[str, str]:
    """As the operator's ssh settings have it for this host; nothing where the client does not tell."""
    user = remote.user.partition(":")[0]
    command = [*shlex.split(ssh), "-G", "-p", str(remote.port), *(("-l", user) if user else ()), "--", remote.host]
    if remote.port == _PORTS["ssh"]:
        # The settings may name another one.
        del command[command.index("-p") : command.index("-p") + 2]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SSH_LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.partition(" ") for line in done.stdout.splitlines()) if done.returncode == 0 else ()
    found = {name: value for name, _, value in pairs if value}
    return found if found.get("port", "").isdigit() and found.get("hostname") else {}


def _remote(repo: str) -> Remote | None:
    """None for a folder. Errors: RepositoryUnavailable."""
    if (scp := repository_address.SCP.fullmatch(repo)) is not None and "://" not in repo:
        return Remote("ssh", scp["host"].strip("[]"), _PORTS["ssh"], scp["user"])
    parts = urlsplit(repo)
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not repo[len(scheme) :].startswith("://"):
        return None
    user = parts.netloc.rpartition("@")[0]
    if not _USER.fullmatch(user):
        raise unavailable(repo, "has signs in its user or password that mean something in a URL", "write them as %XX")
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return Remote(scheme, (parts.hostname or "").strip("[]"), parts.port or _PORTS[scheme], user, path)


def _refused(repo: str, error: NotReached) -> RepositoryUnavailable:
    what = "is on a host that cannot be found" if isinstance(error, NotAHost) else "cannot be reached"
    return unavailable(repo, f"{what}: {error.what}", error.advice)
