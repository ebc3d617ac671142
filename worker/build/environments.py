"""Environments: what wheels need besides themselves, installed once for all that need the same, and kept."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from packaging.markers import UndefinedEnvironmentName
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement

from worker.build.wheel_files import DAMAGED
from worker.errors import fault_of
from worker.kept import Item, size_of

#: Longer metadata is not read.
METADATA_BYTES = 4 * 1024 * 1024
WAIT_S = 0.2
#: Of a marker: what the worker cannot know of a container.
FINER = ("python_full_version", "platform_release", "platform_version", "platform_python", "implementation")
#: Of an environment that is whole. It is written last, and its time is when the environment was used.
READY = "ready"


class Stop(Protocol):
    """As much of a run's stop button as is needed here."""

    def pause(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Wanted:
    """All that decides what is installed, and where it works. `stands_on`: the system and the Python below it.

    `as_of`: what is resolved as of "now" is so for a day, the one named here.
    """

    repo: str
    stands_on: str
    machine: str
    requirements: tuple[str, ...]
    as_of: str
    constraints: str
    network: str
    env: Mapping[str, str]

    @property
    def key(self) -> str:
        text = json.dumps({**asdict(self), "env": dict(self.env)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def requirements(wheel: Path, python: str | None) -> tuple[Requirement, ...] | None:
    """What the wheel asks for when it is installed without extras; None when its metadata cannot be read.

    `python`: the version that it is for, "3.11", else that of this process.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = (name for name in archive.namelist() if name.count("/") == 1)
            name = next(name for name in names if name.endswith(".dist-info/METADATA"))
            with archive.open(name) as file:
                text = file.read(METADATA_BYTES + 1)
        if len(text) > METADATA_BYTES:
            return None
        found = [Requirement(line) for line in parse_email(text)[0].get("requires_dist", [])]
        return tuple(sorted({each for each in found if _applies(each, python)}, key=str))
    except (OSError, StopIteration, *DAMAGED, InvalidRequirement, UndefinedEnvironmentName, RecursionError):
        return None


def _applies(requirement: Requirement, python: str | None) -> bool:
    """As far as it can be told from here: what depends on more than the version is left to the installer."""
    if requirement.marker is None:
        return True
    text = str(requirement.marker)
    if "extra" not in text and any(name in text for name in FINER):
        return True
    here = {"extra": "", **({"python_version": python} if python is not None else {})}
    return requirement.marker.evaluate(here)


@dataclass(frozen=True)
class Environments:
    """`most`: those beyond that number go, the least recently used first. `throw`: takes a folder away.

    `timeout_s`: how long preparing one may take.
    """

    folder: Path
    most: int
    throw: Callable[[Path], None]
    timeout_s: float = 3600.0

    @contextlib.contextmanager
    def using(self, key: str, prepare: Callable[[Path], None], stop: Stop) -> Iterator[Path]:
        """The folder of an environment, which stays as it is for as long as this lasts.

        `prepare` fills it, once for all that ask at the same time. What it raises is raised, and nothing is kept.
        Errors: NodeFault, Stopped.
        """
        place = self.folder / key
        while True:
            with self._locked(key, fcntl.LOCK_SH) as held:
                if held and self._ready(place):
                    yield place / "env"
                    return
            with self._locked(key, fcntl.LOCK_EX) as alone:
                if alone and not self._ready(place):
                    self._make(place, prepare)
            if alone:
                self.tidy()
            else:
                stop.pause(WAIT_S)

    @contextlib.contextmanager
    def again(self, key: str) -> Iterator[Path]:
        """One that is in use already, by what a former life of this worker began. Errors: NodeFault."""
        with self._locked(key, fcntl.LOCK_SH):
            yield self.folder / key / "env"

    def _make(self, place: Path, prepare: Callable[[Path], None]) -> None:
        try:
            self._clear(place)
            (place / "env").mkdir(parents=True)
            # Those who work inside are another user, who looks at nothing else here.
            place.chmod(0o711)
            prepare(place / "env")
            (place / f"{READY}.new").touch()
            (place / f"{READY}.new").rename(place / READY)
        except OSError as error:
            raise fault_of(error, f"preparing the environment {place}") from error
        finally:
            if not self._ready(place):
                self._clear(place)

    def _clear(self, place: Path) -> None:
        if place.exists():
            self.throw(place)

    @staticmethod
    def _ready(place: Path) -> bool:
        """And if so, it is used from now on."""
        try:
            os.utime(place / READY)
        except FileNotFoundError:
            return False
        return True

    def tidy(self) -> None:
        """Removes what is too much, and what was left half-made; nothing that is in use."""
        kept = self.folder.iterdir() if self.folder.exists() else []
        found = sorted((path for path in kept if path.is_dir()), key=_used, reverse=True)
        for number, place in enumerate(found):
            if number < self.most and (place / READY).exists():
                continue
            self._remove(place)

    def items(self) -> Iterator[Item]:
        for place in self.folder.iterdir() if self.folder.exists() else ():
            if place.is_dir():
                yield Item(str(place), _used(place), partial(size_of, place), partial(self._remove, place))

    def _remove(self, place: Path) -> bool:
        with self._locked(place.name, fcntl.LOCK_EX) as alone:
            if alone:
                self._clear(place)
                self._lock(place.name).unlink(missing_ok=True)
            return alone

    def _lock(self, key: str) -> Path:
        return self.folder / f"{key}.lock"

    @contextlib.contextmanager
    def _locked(self, key: str, how: int) -> Iterator[bool]:
        """Whether it could be had at once."""
        try:
            self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            file = self._lock(key).open("w")
        except OSError as error:
            raise fault_of(error, f"locking the environment {key}") from error
        with file:
            yield _try(file, how) and self._same(file, key)

    def _same(self, file: IO[str], key: str) -> bool:
        """The lock of an environment that was removed is nobody's lock any more."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._lock(key).stat())
        except FileNotFoundError:
            return False


def _try(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _used(place: Path) -> float:
    try:
        return (place / READY).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def seal(folder: Path) -> None:
    """Nothing in it is another user's any more; all others can read it, and none can write. Errors: OSError."""
    for parent, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path = os.path.join(parent, name)  # noqa: PTH118 (there are many)
            if not os.path.islink(path):  # noqa: PTH114
                mode = os.stat(path).st_mode & 0o755 | 0o444  # noqa: PTH116
                os.chmod(path, mode | 0o111 if mode & 0o100 else mode)  # noqa: PTH101
            os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
