"""Wheels that others built of the same commit: found in indexes, and believed only when they say so themselves."""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

from installer.sources import WheelFile
from mousebender import simple
from packaging import tags
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version
from pydantic import BaseModel, TypeAdapter, ValidationError

from worker.build import wheels
from worker.build.downloads import Downloads, NotFetched, Page, host
from worker.build.recorded_commit import Recorded, Unreadable, commits_of, recorded


@dataclass(frozen=True)
class Wanted:
    """`version`: what the commit's pyproject.toml says, if it says one. `tags`: what can be installed, best first."""

    sha: str
    package: str | None
    version: str | None
    tags: Sequence[Tag]


@dataclass(frozen=True)
class Found:
    """`notes`: why not from the indexes before. `how`: what its commit was told from."""

    wheel: Path | None
    notes: tuple[str, ...]
    how: str = ""


class _File(BaseModel):
    filename: str
    url: str
    hashes: dict[str, str] = {}


class _NotBelieved(Exception):
    """Why a file is not taken."""


def find(indexes: Iterable[str], wanted: Wanted, into: Path, downloads: Downloads) -> Found:
    """The first that is there and is of this commit. Errors: Stopped, NodeFault."""
    notes: list[str] = []
    for url in indexes:
        try:
            wheel, how = _take(url, wanted, into, downloads)
        except (NotFetched, _NotBelieved) as why:
            notes.append(f"no prebuilt wheel: {why}")
        else:
            return Found(wheel, tuple(notes), f"{wheel.name} from {host(url)}, of this commit by {how}")
    return Found(None, tuple(notes))


def fitting(python: tuple[int, int], platforms: Sequence[str]) -> list[Tag]:
    """What CPython of this version installs on these platforms, best first."""
    return [
        *tags.cpython_tags(python, platforms=platforms),
        *tags.compatible_tags(python, f"cp{python[0]}{python[1]}", platforms),
    ]


def _take(url: str, wanted: Wanted, into: Path, downloads: Downloads) -> tuple[Path, str]:
    try:
        is_file = urllib.parse.urlsplit(url).path.endswith(".whl")
    except ValueError as error:
        raise NotFetched(f"the index {host(url)} cannot be reached: {error}") from error
    file = _named(url) if is_file else _best(_files(url, wanted, downloads), wanted, url)
    try:
        wheels.check_name(file.filename, wanted.package)
        if not is_file or not set(wanted.tags).isdisjoint(parse_wheel_filename(file.filename)[3]):
            return _fetch(file, wanted, into, downloads, names_commit=wanted.sha in url)
    except wheels.NoWheel as error:
        raise _NotBelieved(f"{host(url)}: {error}") from error
    raise _NotBelieved(f"{file.filename} does not fit this Python")


def _named(url: str) -> _File:
    parts = urllib.parse.urlsplit(url)
    name = urllib.parse.unquote(parts.path.rpartition("/")[2])
    algorithm, _, value = parts.fragment.partition("=")
    return _File(filename=name, url=url, hashes={algorithm: value} if value else {})


def _files(url: str, wanted: Wanted, downloads: Downloads) -> list[_File]:
    page = downloads.page(url, simple.ACCEPT_SUPPORTED)
    try:
        files = TypeAdapter(list[_File]).validate_python(_parsed(page, wanted.package or "unnamed"))
        return [file.model_copy(update={"url": urllib.parse.urljoin(page.url, file.url)}) for file in files]
    except (ValueError, TypeError, KeyError, ValidationError, RecursionError, simple.UnsupportedAPIVersion) as error:
        raise NotFetched(f"the index {host(url)} answers what is no page of a project: {str(error)[:200]}") from error


def _parsed(page: Page, package: str) -> object:
    try:
        return simple.parse_project_details(page.text, page.kind, package)["files"]
    except simple.UnsupportedMIMEType:  # many indexes are plain folders of a web server or a bucket
        return simple.from_project_details_html(page.text, package)["files"]


def _best(files: Iterable[_File], wanted: Wanted, url: str) -> _File:
    """Of the package and for this Python: the one that names the commit, else of the highest version; then by tag."""
    ranks = {tag: number for number, tag in enumerate(wanted.tags)}
    found = []
    for file in files:
        with suppress(ValueError):
            name, version, _, of = parse_wheel_filename(file.filename)
            rank = min((ranks[tag] for tag in of if tag in ranks), default=None)
            if rank is not None and _same(name, wanted.package):
                of_commit = any(wanted.sha.startswith(commit) for commit in commits_of(version))
                found.append((of_commit, version, -rank, file))
    if not found:
        raise NotFetched(f"not in the index {host(url)}: no wheel of {wanted.package or 'it'} for this Python")
    return max(found, key=lambda each: each[:3])[3]


def _same(name: str, package: str | None) -> bool:
    return package is None or name == canonicalize_name(package)


def _fetch(file: _File, wanted: Wanted, into: Path, downloads: Downloads, *, names_commit: bool) -> tuple[Path, str]:
    wheel = into / file.filename
    try:
        downloads.file(file.url, wheel)
        _check_hashes(wheel, file)
        wheels.check(wheel)
        _check_record(wheel)
        it = recorded(wheel)
        how = _believed(it, wanted, names_commit=names_commit)
        return _rightly_named(wheel, it), how
    except (Unreadable, wheels.NoWheel) as error:
        wheel.unlink(missing_ok=True)
        raise _NotBelieved(f"{file.filename} is not believed: {error}") from error
    except (NotFetched, _NotBelieved):
        wheel.unlink(missing_ok=True)
        raise


def _check_hashes(wheel: Path, file: _File) -> None:
    for algorithm, value in file.hashes.items():
        if algorithm in hashlib.algorithms_guaranteed and not algorithm.startswith("shake"):
            with wheel.open("rb") as content:
                if hashlib.file_digest(content, algorithm).hexdigest() != value.lower():
                    raise _NotBelieved(f"{file.filename} does not have the {algorithm} that the index names")


def _check_record(wheel: Path) -> None:
    try:
        with WheelFile.open(wheel) as source:
            source.validate_record()
    except (ValueError, TypeError, BadZipFile) as error:
        raise _NotBelieved(f"{wheel.name} is not what its RECORD says: {str(error)[:300]}") from error


def _believed(it: Recorded, wanted: Wanted, *, names_commit: bool) -> str:
    """What says that the wheel is of the commit. Errors: _NotBelieved."""
    if wanted.package is not None and not _same(canonicalize_name(it.name), wanted.package):
        raise _NotBelieved(f"the wheel is of {it.name}, not of {wanted.package}")
    for commit, where in it.commits:
        if not wanted.sha.startswith(commit):
            raise _NotBelieved(f"a wheel of {it.name} records another commit, {commit}, in {where}")
    for _, where in it.commits:
        return where
    with suppress(ValueError):  # of no version, or of one with thousands of digits
        if names_commit and wanted.version and Version(wanted.version).public == it.version.public:
            return f"its address, and its version {it.version}, which is that of pyproject.toml"
    raise _NotBelieved(f"a wheel of {it.name} {it.version} does not record its commit")


def _rightly_named(wheel: Path, it: Recorded) -> Path:
    """Installers refuse a wheel under another version than its own, which is how some indexes call each newest one."""
    if parse_wheel_filename(wheel.name)[1] == it.version:
        return wheel
    distribution, _, rest = wheel.name.split("-", 2)
    return wheel.rename(wheel.with_name(f"{distribution}-{it.version}-{rest}"))
