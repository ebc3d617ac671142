"""Which repositories may be asked for, and how their addresses may be shown."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

from service.domain.errors import RepositoryUnavailable

_ADVICE = "give an https://, ssh:// or git:// URL, or git@host:path"
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\]")
SCP = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.+-]*)@(?P<host>[^:/@]+|\[[^\]/@]*\]):(?P<path>[^:-].*)")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_BLANK = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_NAME = re.compile(r"\w[\w./-]{0,99}")
_REMOTE = ("https", "ssh", "git")


def protocols(allow_file: bool) -> tuple[str, ...]:
    return (*_REMOTE, "file") if allow_file else _REMOTE


def check(repo: str, *, allow_file: bool) -> None:
    """Errors: RepositoryUnavailable for whatever is not an address of an allowed transport."""
    if not repo or len(repo) > 2000 or (_BLANK if not repo.startswith("/") else _CONTROL).search(repo):
        raise _refused(repo, "is no address: it is empty, longer than 2000, or holds blanks or control characters")
    if repo.startswith("-"):
        raise _refused(repo, "begins with '-', which git would take for an option")
    if (url := _URL.match(repo)) is not None:
        _check_url(repo, url["scheme"].lower(), allow_file)
    elif repo.startswith("/"):
        _check_file(repo, allow_file)
    elif (scp := SCP.fullmatch(repo)) is not None:
        _check_host(repo, scp["host"])
    else:
        why = "is neither a URL, nor git@host:path" + (", nor an absolute path" if allow_file else "")
        raise _refused(repo, why, _folder_advice(repo) if allow_file else "")


def shown(repo: str) -> str:
    """The address without what may be a secret: all before the @ in https, a password in ssh."""
    repo = re.sub(r"(?i)\b(ssh|git)://([^/@:\s]*):[^/\s]*@", r"\1://\2:***@", repo)
    return re.sub(r"(?i)\b(?!ssh:|git:)([a-z][a-z0-9+.-]*)://[^/\s]*@", r"\1://***@", repo)


def mirror_name(repo: str) -> str:
    """Readable, and different for every two addresses; different passwords make different mirrors."""
    path = re.split(r"[:/]", shown(repo).rstrip("/").removesuffix(".git"))
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(part for part in path[-2:] if part)).strip(".-")[-40:]
    return f"{readable or 'repository'}-{hashlib.sha256(repo.encode()).hexdigest()[:20]}"


def _check_url(repo: str, scheme: str, allow_file: bool) -> None:
    if scheme == "file":
        if not repo[len("file://") :].startswith("/"):
            raise _refused(repo, "names a host in a file:// URL")
        return _check_file(repo, allow_file)
    if scheme not in _REMOTE:
        raise _refused(repo, f"uses the transport {scheme!r}, which is not allowed here")
    try:
        parts = urlsplit(repo)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise _refused(repo, f"is no valid URL ({error})") from None
    if (parts.username or "").startswith("-"):
        raise _refused(repo, "has a user that begins with '-'")
    if not parts.path.strip("/"):
        raise _refused(repo, "names a host and no repository on it")
    return _check_host(repo, f"[{host}]" if ":" in host else host)


def _check_host(repo: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise _refused(repo, f"has no valid host name ({host!r})")


def _check_file(repo: str, allow_file: bool) -> None:
    if not allow_file:
        raise _refused(repo, "lies on the service's own disk, which this service does not allow")


def _folder_advice(repo: str) -> str:
    folder = f"./{repo}" if _NAME.fullmatch(repo) else "./folder"
    return (
        f"; or a folder: its absolute path, or in a request file for firstbad submit {folder} from where that file is"
    )


def _refused(repo: str, why: str, more: str = "") -> RepositoryUnavailable:
    safe = shown(repo)
    return RepositoryUnavailable(f"{safe[:200]!r} {why}", value=safe, field="repo", advice=_ADVICE + more)
