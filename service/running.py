"""What the worker of a `firstbad up` that runs was given: for the doctor, who looks the same node over."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

FILE, LOCK = "worker.json", "lock"


@contextmanager
def told(home: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Of the environment the settings alone; an address among them may hold a password, so that only we may read it."""
    file, ours = home / FILE, {name: value for name, value in environment.items() if name.startswith("FIRSTBAD_")}
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump(ours, out)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def settings(home: Path) -> dict[str, str] | None:
    """Of the worker of the `up` that holds this home now. Errors: OSError, where this user may not read them."""
    try:
        with (home / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _read(home / FILE)
    return None


def _read(file: Path) -> dict[str, str] | None:
    """None where the home is held by something else, as `firstbad db upgrade`."""
    try:
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found
