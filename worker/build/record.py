"""RECORD after a change: the lines of members that changed are written anew, all others stay as they are."""

from __future__ import annotations

import base64
import bisect
import csv
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from worker.build.impossible import CannotOverlay


@dataclass(frozen=True)
class Changes:
    """`members`: all of the new wheel, in its order. `renamed`: new name by old name. `content`: by new name."""

    members: Sequence[str]
    renamed: Callable[[str], str]
    content: Mapping[str, bytes]


def rewritten(text: bytes, before: Sequence[str], changes: Changes) -> bytes:
    """`before`: the members of the wheel that `text` is of, in its order. Errors: CannotOverlay."""
    old = _lines(text)
    lines = {changes.renamed(name): (changes.renamed(name), *rest) for name, *rest in old.values()}
    kept = {changes.renamed(name): raw for raw, (name, *_) in old.items()}
    added = [name for name in changes.members if name in changes.content and name not in lines]
    order = _order([name for name, *_ in old.values()], before, list(lines), added, changes)
    end = "\r\n" if b"\r\n" in text else "\n"
    algorithm = next((entry[1].partition("=")[0] for entry in lines.values() if entry[1]), "sha256")
    out = []
    for name in order:
        entry = lines.get(name)
        unchanged = entry is not None and name not in changes.content and kept[name].startswith(name)
        out.append(kept[name] if unchanged else _line(name, entry, changes.content.get(name), algorithm) + end)
    return "".join(out).encode()


def _lines(text: bytes) -> dict[str, tuple[str, str, str]]:
    found: dict[str, tuple[str, str, str]] = {}
    try:
        for line in text.decode("utf-8").splitlines(keepends=True):
            name, digest, size = next(csv.reader([line]))
            found[line] = (name, digest, size)
    except (ValueError, StopIteration, csv.Error) as error:
        raise CannotOverlay(f"RECORD of the base wheel has a line that is not understood: {error}") from error
    return found


def _line(name: str, old: tuple[str, ...] | None, content: bytes | None, algorithm: str) -> str:
    entry = (name, *(old[1:] if old else ("", "")))
    if content is not None and (old is None or old[1]):
        entry = (name, f"{algorithm}={_digest(content, algorithm)}", str(len(content)))
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(entry)
    return text.getvalue()


def _digest(content: bytes, algorithm: str) -> str:
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        raise CannotOverlay(f"RECORD of the base wheel has hashes of an unknown kind, {algorithm!r}")
    return base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=").decode()


def _order(old: list[str], before: Sequence[str], renamed: list[str], added: list[str], changes: Changes) -> list[str]:
    """Of the lines: as the members lie in the wheel, or by name, whichever the base has."""
    there = set(changes.members)
    left = [name for name in renamed if name in there]
    if old == [name for name in before if name in set(old)]:
        return [name for name in changes.members if name in {*left, *added}]
    own = [name for name in left if name.endswith(".dist-info/RECORD")]
    rest = [name for name in left if name not in own]
    before_rest = [name for name in old if not name.endswith(".dist-info/RECORD")]
    if before_rest == sorted(before_rest):
        rest = sorted(rest)
        for name in added:
            bisect.insort(rest, name)
        return [*rest, *own]
    return [*rest, *added, *own]
