"""A request file, and what the command line changes in it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from service.cli.status import CommandError
from service.doors.api.document import JSON_TYPES, YAML_TYPES, parse

STANDARD_INPUT = "-"


def read(name: str, changes: Sequence[str], script: Path | None) -> dict[str, Any]:
    """Errors: CommandError, UserError."""
    document = parse(_bytes(name), JSON_TYPES[0] if name.endswith(".json") else YAML_TYPES[0])
    for change in changes:
        set_key(document, change)
    if script is not None:
        document["script"] = _text(script)
    base = Path.cwd() if name == STANDARD_INPUT else Path(name).parent
    return _with_local_repo(document, base)


def _bytes(name: str) -> bytes:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise CommandError(f"{name}: {reason}", "name a request file, or - for standard input") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--script {path}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeDecodeError:
        raise CommandError(f"--script {path}: it is no UTF-8 text", "a script is text; let it fetch data") from None


def set_key(document: dict[str, Any], change: str) -> None:
    """`a.b=value` into the nested mapping."""
    path, equals, value = change.partition("=")
    *outer, last = path.split(".")
    if not equals or not last:
        raise CommandError(f"--set {change}: there is no name and value in it", "write it like --set good=v1.4.0")
    place: Any = document
    for key in outer:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise CommandError(f"--set {change}: {key} is no mapping", "set that key as a whole")
    place[last] = value


def _with_local_repo(document: dict[str, Any], base: Path) -> dict[str, Any]:
    """A path beside the request file means nothing to the service, which stands elsewhere."""
    repo = document.get("repo")
    if isinstance(repo, str) and repo.startswith((".", "~")):
        return {**document, "repo": str((base / Path(repo).expanduser()).resolve())}
    return document
