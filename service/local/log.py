"""What is kept of a run: a folder with a log of each probe, a line of JSON for each, and a log that git replays."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pydantic import TypeAdapter, ValidationError

from service.domain.errors import NotNow
from service.local import containers
from service.local.asked import Asked, Seen
from service.local.worktrees import remove

#: Runs of one repository that are kept, beside those that are under way.
KEPT = 20
#: Of a run that has its answer; any other goes on where it was.
OVER = frozenset({"found", "suspects", "refused"})
_SEEN = TypeAdapter(Seen)


@dataclass(frozen=True)
class RunFolder:
    """`lock`: an open file, locked as long as the run, and all that it started, is under way."""

    path: Path
    lock: int

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def trees(self) -> Path:
        return self.path / "trees"

    @property
    def files(self) -> Path:
        return self.path / "files"

    @property
    def replay(self) -> Path:
        return self.path / "bisect.log"

    def log_of(self, number: int, sha: str) -> Path:
        return self.path / "logs" / f"{number:03}-{sha[:10]}.log"

    def seen(self) -> tuple[Seen, ...]:
        """A line that a crash has cut off is left out, and so is what no release before has written so."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.path / "probes.jsonl").read_bytes().splitlines():
                with contextlib.suppress(ValidationError):
                    found.append(_SEEN.validate_json(line))
        return tuple(found)

    def write_seen(self, seen: Sequence[Seen], told: Mapping[int, Mapping[str, str]]) -> None:
        """All of them, each with its verdict as it is now, in the place of what stood there."""
        lines = [json.dumps({**_SEEN.dump_python(one, mode="json"), **told[one.number]}) for one in seen]
        _replace(self.path / "probes.jsonl", "".join(f"{line}\n" for line in lines))

    def write_replay(self, text: str) -> None:
        _replace(self.replay, text)

    def write_run(self, told: Mapping[str, Any]) -> None:
        _replace(self.path / "run.json", json.dumps(told, indent=2) + "\n")


def put_away(run: Path) -> None:
    """What only a run that is under way needs."""
    for name in ("trees", "files"):
        # What cannot be removed now, the next run tries again.
        with contextlib.suppress(OSError):
            remove(run / name)


@contextlib.contextmanager
def opened(base: Path, asked: Asked, *, again: bool) -> Iterator[RunFolder]:
    """The folder of this run: that of the same one, if it was interrupted. Errors: NotNow while it is under way."""
    base.mkdir(parents=True, exist_ok=True)
    # One at a time looks around here, so that none begins in a folder that another one puts away.
    with _locked(base / "lock"):
        kept = [path for path in sorted(base.iterdir()) if path.is_dir()]
        earlier = _earlier(kept, asked)
        path = _fresh(base, asked) if earlier is None or again else earlier
        lock = _lock(path)
        _prune([other for other in kept if other != path])
    try:
        yield RunFolder(path, lock)
    finally:
        os.close(lock)


def _earlier(kept: Sequence[Path], asked: Asked) -> Path | None:
    """Errors: NotNow."""
    found = [path for path in kept if path.name.endswith(asked.key[:12])]
    for path in found:
        if _under_way(path) and _owner_lives(path):
            advice = "wait for it, or stop it with Ctrl-C where it runs"
            raise NotNow(f"the same run is under way: {path}", advice=advice)
    return found[-1] if found and state_of(found[-1]) not in OVER else None


def _owner_lives(path: Path) -> bool:
    """Else those that it started hold its lock, for the moment that they need to end."""
    with contextlib.suppress(OSError, ValueError):
        return psutil.pid_exists(int((path / "lock").read_text()))
    return False


def state_of(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return str(json.loads((path / "run.json").read_text()).get("state", ""))
    return ""


def _fresh(base: Path, asked: Asked) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = base / f"{stamp}-{asked.key[:12]}"
    tries = 1
    while path.exists():
        tries += 1
        path = base / f"{stamp}.{tries}-{asked.key[:12]}"
    (path / "logs").mkdir(parents=True)
    return path


def _prune(others: Sequence[Path]) -> None:
    """Takes away what killed runs have left: trees, containers; and the oldest runs, logs and all."""
    idle = [path for path in others if not _under_way(path)]
    for path in idle:
        if (path / "trees").exists():
            containers.remove_all_of(path.name)
        put_away(path)
    for path in idle[: max(len(idle) - KEPT, 0)]:
        with contextlib.suppress(OSError):
            remove(path)


def _under_way(path: Path) -> bool:
    try:
        handle = os.open(path / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _lock(path: Path) -> int:
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
