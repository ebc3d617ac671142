"""METADATA and entry_points.txt after a change of pyproject.toml: lines of the fields that changed, and no other.

How a build backend writes a field is told from the base: of several ways that are tried, the one that gives the lines
that are there for the field's old value gives those for the new one. Everything else stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.errors import ExceptionGroup
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pyproject_metadata import ConfigurationError, StandardMetadata

from worker.build.impossible import CannotOverlay

#: Header lines of the fields of [project], as they are spelled by most.
HEADERS = {
    "version": ("Version",),
    "description": ("Summary",),
    "dependencies": ("Requires-Dist",),
    "requires-python": ("Requires-Python",),
    "classifiers": ("Classifier",),
    "urls": ("Project-URL",),
    "keywords": ("Keywords",),
    "authors": ("Author", "Author-email"),
    "maintainers": ("Maintainer", "Maintainer-email"),
}
POINTS = frozenset({"scripts", "gui-scripts", "entry-points"})
#: The order in which headers are written; where a line is new, it goes where its backend would have put it.
_ORDERS = {
    "setuptools": (
        "Metadata-Version Name Version Summary Home-page Download-URL Author Author-email Maintainer Maintainer-email "
        "License-Expression License Project-URL Keywords Platform Classifier Requires-Python Description-Content-Type "
        "License-File Requires-Dist Provides-Extra Dynamic"
    ),
    "hatchling": (
        "Metadata-Version Name Version Dynamic Summary Project-URL Author Author-email Maintainer Maintainer-email "
        "License License-Expression License-File Keywords Classifier Requires-Python Requires-Dist Provides-Extra "
        "Description-Content-Type"
    ),
}
_USUAL = (
    "Metadata-Version Name Version Dynamic Summary Keywords Home-page Author Author-email Maintainer Maintainer-email "
    "License License-Expression License-File Classifier Project-URL Requires-Python Requires-Dist Provides-Extra "
    "Description-Content-Type"
)
_EXTRA = re.compile(r";.*\bextra\b")


#: The values of a header's lines, for a field of [project].
_Way = Callable[[str, str, Mapping[str, Any]], list[str]]


@dataclass(frozen=True)
class Line:
    """A header with its continuation lines, as it stands in the file."""

    name: str
    text: str


def split(metadata: bytes) -> tuple[list[Line], bytes | None]:
    """The header lines, and the body after the blank line, None when there is no such. Errors: CannotOverlay."""
    head, end, body = metadata.partition(b"\n\n")
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotOverlay(f"METADATA of the base wheel is not in UTF-8: {error}") from error
    if "\r" in text:
        raise CannotOverlay("METADATA of the base wheel has line ends that are not understood")
    lines: list[Line] = []
    for each in text.removesuffix("\n").split("\n"):
        if each[:1] in (" ", "\t") and lines:
            lines[-1] = Line(lines[-1].name, f"{lines[-1].text}\n{each}")
        else:
            lines.append(Line(each.partition(":")[0], each))
    return lines, body if end else None


def joined(lines: Iterable[Line], body: bytes | None) -> bytes:
    return "".join(f"{line.text}\n" for line in lines).encode() + (b"" if body is None else b"\n" + body)


def with_fields(
    lines: list[Line], before: Mapping[str, Any], after: Mapping[str, Any], changed: Iterable[str], backend: str
) -> list[Line]:
    """The header lines after a change of these fields of [project]. Errors: CannotOverlay."""
    order = _ORDERS.get(backend, _USUAL).lower().split()
    for field in sorted(set(changed) - POINTS):
        for header in HEADERS[field]:
            try:
                pairs = _pairs(field, header, before, after, backend)
            except (ValueError, TypeError, RecursionError) as error:
                raise CannotOverlay(
                    f"project.{field} of pyproject.toml is not understood: {str(error)[:200]}"
                ) from error
            lines = _replaced(lines, header, pairs, order, is_known=backend in _ORDERS)
    return lines


def _replaced(
    lines: list[Line], header: str, pairs: list[tuple[list[str], list[str]]], order: list[str], *, is_known: bool
) -> list[Line]:
    there = [number for number, line in enumerate(lines) if _is(line, header)]
    found = [lines[number].text.partition(":")[2].strip() for number in there]
    fitting = [tuple(after) for before, after in pairs if before == found]
    new = {fitting[0]} if is_known and fitting else set(fitting)
    if len(new) != 1:
        why = "cannot be told for the new value" if new else f"does not say what {header} of METADATA says"
        raise CannotOverlay(f"pyproject.toml changed, and its old value {why}")
    spelled = lines[there[0]].name if there else header
    written = [Line(spelled, f"{spelled}: {value}") for value in new.pop()]
    at = there[0] if there else _place(lines, header, order)
    rest = [line for number, line in enumerate(lines) if number not in there]
    return [*rest[:at], *written, *rest[at:]]


def _is(line: Line, header: str) -> bool:
    """Requirements of extras are another field's."""
    extra = header == "Requires-Dist" and _EXTRA.search(line.text)
    return line.name.lower() == header.lower() and not extra


def _place(lines: list[Line], header: str, order: list[str]) -> int:
    earlier = order[: order.index(header.lower())]
    return max((number + 1 for number, line in enumerate(lines) if line.name.lower() in earlier), default=0)


def _pairs(
    field: str, header: str, before: Mapping[str, Any], after: Mapping[str, Any], backend: str
) -> list[tuple[list[str], list[str]]]:
    """What the header's lines may be before and after; the way that the backend is known for first."""
    ways = list(_WAYS)
    if backend in _ORDERS:
        known = _KNOWN.get((backend, field), _library)
        ways = [known, *(way for way in ways if way is not known)]
    return [(way(field, header, before), way(field, header, after)) for way in ways]


def _sorted(way: _Way) -> _Way:
    def values(field: str, header: str, table: Mapping[str, Any]) -> list[str]:
        found = way(field, header, table)
        if field == "keywords":
            return [",".join(sorted(each.split(","))) for each in found]
        return sorted(found)

    return values


def _quoted(way: _Way) -> _Way:
    """Markers in quotes of the other kind."""
    return lambda field, header, table: [value.replace('"', "'") for value in way(field, header, table)]


def _canonical(way: _Way) -> _Way:
    """Requirements by their canonical names."""

    def values(field: str, header: str, table: Mapping[str, Any]) -> list[str]:
        found = way(field, header, table)
        return [_named_canonically(value) for value in found] if field == "dependencies" else found

    return values


def _named_canonically(requirement: str) -> str:
    parsed = Requirement(requirement)
    parsed.name = canonicalize_name(parsed.name)
    return str(parsed)


def _library(field: str, header: str, table: Mapping[str, Any]) -> list[str]:
    """By pyproject-metadata, which reads nothing but this field."""
    known = {"name": "x", "version": "0", **({field: table[field]} if field in table else {})}
    try:
        message = StandardMetadata.from_pyproject({"project": known}).as_rfc822()
    except (ConfigurationError, ExceptionGroup, InvalidVersion, TypeError, ValueError) as error:
        raise CannotOverlay(f"project.{field} of pyproject.toml is not understood: {str(error)[:200]}") from error
    return [str(value) for name, value in message.items() if name.lower() == header.lower()]


def _given(field: str, header: str, table: Mapping[str, Any]) -> list[str]:
    """As some backends do, which write what they read. For people and URLs no other way is known."""
    value = table.get(field)
    if isinstance(value, str):
        return [value] if value else []
    if field in ("dependencies", "classifiers") and isinstance(value, list):
        return [str(each) for each in value]
    return _library(field, header, table)


_HATCH: _Way = _quoted(_sorted(_canonical(_library)))
_WAYS: tuple[_Way, ...] = (_given, _library, _sorted(_given), _sorted(_library), _quoted(_library), _HATCH)
_KNOWN: Mapping[tuple[str, str], _Way] = {
    ("hatchling", "version"): _given,
    ("hatchling", "dependencies"): _HATCH,
    ("hatchling", "classifiers"): _sorted(_library),
    ("hatchling", "keywords"): _sorted(_library),
}


def described(body: bytes, readme: bytes) -> Callable[[bytes], bytes] | None:
    """How the body of METADATA is made of the README; None when it is not."""
    ways: tuple[Callable[[bytes], bytes], ...] = (
        lambda text: text,
        lambda text: text if text.endswith(b"\n") else text + b"\n",
        lambda text: b"\n" + text,
        lambda text: b"\n" + (text if text.endswith(b"\n") else text + b"\n"),
    )
    return next((way for way in ways if way(readme) == body), None)


def entry_points(text: bytes, before: Mapping[str, Any], after: Mapping[str, Any]) -> bytes:
    """Errors: CannotOverlay."""
    new = {_points(after, *style) for style in _STYLES if _points(before, *style).encode() == text}
    if len(new) != 1 or not any(new):
        raise CannotOverlay("the entry points of pyproject.toml changed, and entry_points.txt cannot be told from them")
    return new.pop().encode()


#: Groups by name, names within them, what ends a group, what ends the file.
_STYLES = [
    (groups, names, between, end)
    for groups in (True, False)
    for names in (True, False)
    for between in ("\n", "\n\n")
    for end in ("", "\n", "\n\n")
]


def _points(table: Mapping[str, Any], by_group: bool, by_name: bool, between: str, end: str) -> str:
    groups = {"console_scripts": table.get("scripts"), "gui_scripts": table.get("gui-scripts")}
    named = table.get("entry-points")
    groups |= named if isinstance(named, Mapping) else {}
    present = [(group, points) for group, points in groups.items() if isinstance(points, Mapping) and points]
    parts = []
    for group, points in sorted(present) if by_group else present:
        pairs = sorted(points.items()) if by_name else list(points.items())
        parts.append("\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in pairs)]))
    return between.join(parts) + (end if parts else "")


def renamed_version(spelled: str, before: str, after: str) -> str:
    """The version as the names of the wheel and its folders have it. Errors: CannotOverlay."""
    try:
        ways = [(str(Version(before)), str(Version(after))), (before, after)]
    except ValueError as error:
        raise CannotOverlay(f"project.version of pyproject.toml: {error}") from error
    new = next((new for old, new in ways if old.replace("-", "_") == spelled), None)
    if new is None or not re.fullmatch(r"[A-Za-z0-9.+!_]+", new.replace("-", "_")):
        raise CannotOverlay(f"the wheel has the version {spelled}, but pyproject.toml says {before}")
    return new.replace("-", "_")
