"""What git says when a repository cannot be read, turned into what a user, or the operator, can do about it."""

from __future__ import annotations

import re
from pathlib import Path

from service.adapters.git_command import MirrorFailed, Output
from service.adapters.repository_address import shown
from service.domain.errors import RepositoryUnavailable

_OURS = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Too many open files"
    r"|File too large|[Oo]ut of memory|Cannot allocate memory|cannot fork|died of signal"
)
#: All that git says when the process that unpacks was killed, while a broken connection leaves more lines.
_SILENT_DEATH = "fatal: fetch-pack: invalid index-pack output"
#: Git follows no redirect here.
MOVED = re.compile(r"returned error: 30[12378]\b")
SHALLOW = re.compile(r"source repository is shallow|shallow roots are not allowed")
_MISSING = "not our ref|unadvertised object|couldn't find remote ref|no such remote ref"
_FILLER = re.compile(r"Cloning into|fatal: Could not read from remote|Please make sure|and the repository exists")
_THEIRS: tuple[tuple[str, str, str], ...] = (
    (
        r"could not read (Username|Password)|terminal prompts disabled|Authentication failed|error: 40[13]\b",
        "does not exist, or needs a password",
        "check the address; for a private repository use an ssh address whose key the service has",
    ),
    (
        r"Permission denied \((?!os)|Permission denied, please try again|Too many authentication failures",
        "does not let this service in",
        "give the service an ssh key that may read it",
    ),
    (
        r"Host key verification failed",
        "is on a host whose ssh key the service does not know",
        "add the host to the known_hosts of the user that runs the service",
    ),
    (
        r"SSL certificate problem|certificate verif|server certificate|SSL routines|gnutls_handshake",
        "is on a host whose certificate is not trusted",
        "add the host's certificate authority to those of the machine that runs the service",
    ),
    (
        r"[Cc]ould not resolve host|Name or service not known|nodename nor servname|unable to look up",
        "is on a host that cannot be found",
        "check the host name",
    ),
    (
        r"Connection (refused|timed out|reset)|Failed to connect|[Cc]ouldn't connect|unable to connect|No route to host"
        r"|Network is unreachable|Operation too slow|Timeout: the command|Operation timed out|Timeout, server",
        "is on a host that does not answer",
        "check that the service can reach it, and submit again",
    ),
    (
        r"did not receive expected object|missing (blob|tree|commit|object)|bad tree object|promisor remote",
        "is incomplete: objects are missing from it",
        "give the repository that it was cloned from, or remove its grafts",
    ),
    (
        r"does not exist|[Rr]epository not found|repository '.*' not found|not appear to be a git repo"
        r"|not a git repository|error: 404\b|access denied or repository not exported",
        "does not exist, or is no git repository",
        "check the address",
    ),
    (
        r"Permission denied",
        "may not be read by the user that runs the service",
        "give that user the right to read it",
    ),
)


def error_of(repo: str, output: Output, mirrors: Path) -> RepositoryUnavailable | MirrorFailed:
    """Of a clone or fetch that failed. Where git complains of a path below `mirrors`, the fault is ours."""
    if SHALLOW.search(output.errors):
        return unavailable(
            repo,
            "is a shallow clone: commits are missing from it, so a range would silently be cut short",
            "run `git fetch --unshallow` in it, or give the repository it was cloned from",
        )
    local = "\n".join(line for line in output.errors.splitlines() if not line.startswith("remote:"))
    if _OURS.search(local) or f"{mirrors}/" in local or last_lines(local) == _SILENT_DEATH:
        return MirrorFailed(f"the mirror of {shown(repo)} cannot be written: {shown(last_lines(local))}")
    for pattern, what, advice in _THEIRS:
        if re.search(pattern, output.errors):
            return unavailable(repo, what, advice, output.errors)
    return unavailable(repo, "cannot be read", "check the address", output.errors)


def moved(repo: str, to: str) -> RepositoryUnavailable:
    """`to`: where it says that it is now; empty when that is not known."""
    advice = f"give {to!r} if you trust it" if to else "give the address that it has now"
    return unavailable(repo, "has moved to another address, which is not followed", advice)


def checked(output: Output) -> Output:
    """Of a command that only reads a mirror, and so cannot fail for a reason of the user's. Errors: MirrorFailed."""
    if output.status != 0:
        raise MirrorFailed(f"git failed on a mirror: {last_lines(output.errors)}")
    return output


def missing_object(output: Output) -> bool:
    """The server does not have, or does not give away, the commit that was asked for."""
    return re.search(_MISSING, output.errors) is not None


def unavailable(repo: str, what: str, advice: str, errors: str = "") -> RepositoryUnavailable:
    said = f"; git said: {shown(last_lines(errors))}" if errors.strip() else ""
    return RepositoryUnavailable(f"{shown(repo)} {what}{said}", value=shown(repo), field="repo", advice=advice)


def last_lines(errors: str, most: int = 3) -> str:
    useful = [line.strip() for line in errors.splitlines() if line.strip() and not _FILLER.match(line)]
    return " / ".join(useful[-most:])[:500]
