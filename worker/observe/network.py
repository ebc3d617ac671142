"""Whether a build failed because the network, or a package index, was not there."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

from worker.observe.builds import of_code
from worker.observe.lines import readable, without_stamp

#: So many lines at the end of a log tell what it ended of.
TAIL = 1000
_STATUS = r"(?:429|5\d\d)\b"

#: What tools say when the network, or who answers there, has failed.
UNREACHABLE = {
    "name": re.compile(r"(?i)(?:could ?n[o']t|unable to|failed to) (?:resolve|look ?up) (?:host|address|proxy)"),
    "resolver": re.compile(
        r"(?i)temporary failure (?:in name resolution|resolving)|name or service not known|no such host"
    ),
    "connect": re.compile(
        r"(?i)failed to connect to \S+|could ?n[o']t connect to|connection timed out|tcp connect error"
    ),
    "connection": re.compile(r"(?i)connection (?:was )?(?:refused|reset|aborted|closed abruptly)|no route to host"),
    "network": re.compile(r"(?i)network is unreachable|network error|error sending request for url"),
    "urllib": re.compile(r"NewConnectionError|Max retries exceeded with url|ConnectTimeoutError|ReadTimeoutError"),
    "urlopen": re.compile(r"urlopen error timed out|RemoteDisconnected|IncompleteRead|socket\.gaierror"),
    "node": re.compile(
        r"\bE(?:CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH)\b|\bcode E(?:429|5\d\d)\b"
    ),
    "http": re.compile(
        rf"(?i)\bHTTPS?(?:/[\d.]+)?(?: \w+){{0,3}}:? \(?{_STATUS}|"
        rf"returned error: {_STATUS}|\bstatus(?:[_ ]code)?[:=]? {_STATUS}"
    ),
    "requests": re.compile(r"\b(?:429 Client|5\d\d Server) Error: "),
    "reason": re.compile(r"(?i)too many requests|bad gateway|service (?:temporarily )?unavailable|gateway time-?out"),
    "tls": re.compile(
        r"(?i)ssl(?:error|:\w+_ERROR| certificate problem)|tls handshake|certificate verify failed|gnutls_handshake"
    ),
    "git": re.compile(r"early EOF|the remote end hung up|RPC failed; |fetch-pack: unexpected disconnect"),
    "curl": re.compile(r"^curl: \((?:5|6|7|16|18|28|35|52|55|56|60|92)\) "),
    "timeout": re.compile(
        r"(?i)(?:read|operation|request|handshake) (?:operation )?timed out|i/o timeout|timeout was reached"
    ),
}
#: An attempt that is made again says nothing yet.
_AGAIN = re.compile(r"(?i)\bretrying\b|tries remaining|will retry|^warning: ")
#: But pip, when it is at the end of its attempts, says only that it knows of no version.
_PIP_AGAIN = re.compile(r"^WARNING: Retrying \(.*after connection broken by")
_PIP_NONE = re.compile(r"^ERROR: Could not find a version .*\(from versions: none\)")


def unreachable(lines: Iterable[bytes]) -> str | None:
    """The first line that says so; None where a compiler found something wrong."""
    tail = deque(lines, TAIL)
    if of_code(tail):
        return None
    again = False
    for text in (readable(without_stamp(line)).strip() for line in tail):
        if _PIP_AGAIN.search(text):
            again = True
        elif (again and _PIP_NONE.search(text)) or (
            any(said.search(text) for said in UNREACHABLE.values()) and not _AGAIN.search(text)
        ):
            return text
    return None
