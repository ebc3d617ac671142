"""What the trees of many commits hold, read from a mirror as what changed from each to the next.

Each commit is compared with one that is known, its parent where that is asked for too: git then looks only into the
folders that differ, and 20,000 commits cost little more than their changes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

from service.adapters import git_errors
from service.adapters.git_command import GitCommand, MirrorFailed
from service.adapters.git_errors import checked
from service.adapters.git_mirror import full
from service.domain.patterns import NO_FILES, Patterns, parse

FILE_BYTES = 1024 * 1024
#: Comparisons for each git command: what they print is in memory at once.
BATCH = 4000
#: Questions, each of one mirror, that are remembered, and commits of one.
QUESTIONS_KEPT = 32
COMMITS_KEPT = 200_000
#: Git knows this tree in every repository, by the length of its ids.
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_NOTHING, _LINK, _SUBMODULE = b"000000", b"120000", b"160000"
#: Sets of files are told apart by the sum of their digests, each of so many bytes: with fewer, other files with the
#: same sum could be made up.
_SUM_BYTES = 256

Question = tuple[Path, str, tuple[str, ...]]
V = TypeVar("V")


@dataclass(frozen=True)
class Version:
    """A file as it is in one commit."""

    mode: bytes
    id: bytes

    @property
    def plain(self) -> bool:
        return self.mode not in (_LINK, _SUBMODULE)


@dataclass(frozen=True)
class Change:
    path: bytes
    before: Version | None
    after: Version | None


@dataclass(frozen=True)
class Step:
    """A commit's tree, and the commit whose tree it is compared with; without one, all of its files are changes."""

    sha: str
    tree: str
    base: str | None


class Trees:
    """Errors of every call: MirrorFailed, also for a commit that the mirror does not hold."""

    def __init__(self, git: GitCommand) -> None:
        self._git = git
        self._known: OrderedDict[Question, dict[str, str]] = OrderedDict()
        self._lock = Lock()

    def ids(self, mirror: Path, shas: Collection[str], patterns: tuple[str, ...]) -> dict[str, str]:
        """By commit, as History.trees says; NO_FILES where nothing is chosen. Errors: BadPattern."""
        parsed = parse(patterns)
        return self._remembered((mirror, "trees", patterns), shas, lambda new: self._read_ids(mirror, new, parsed))

    def contents(self, mirror: Path, shas: Collection[str], path: str) -> dict[str, bytes | None]:
        """By commit, as History.files says."""
        if "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            return dict.fromkeys(shas)
        found = self._remembered((mirror, "file", (path,)), shas, lambda new: self._find(mirror, new, path))
        blobs = self._small_blobs(mirror, sorted(set(found.values()) - {""}))
        return {sha: blobs.get(blob) for sha, blob in found.items()}

    def _remembered(
        self, question: Question, shas: Collection[str], read: Callable[[set[str]], dict[str, str]]
    ) -> dict[str, str]:
        with self._lock:
            known = self._known.get(question, {})
            found = {sha: known[sha] for sha in shas if sha in known}
        if new := {full(sha) for sha in shas} - found.keys():
            answers = read(new)
            self._remember(question, answers)
            found |= answers
        return found

    def _remember(self, question: Question, answers: Mapping[str, str]) -> None:
        with self._lock:
            known = self._known.setdefault(question, {})
            if len(known) + len(answers) > COMMITS_KEPT:
                known.clear()
            known.update(answers)
            self._known.move_to_end(question)
            while len(self._known) > QUESTIONS_KEPT:
                self._known.popitem(last=False)

    def _read_ids(self, mirror: Path, shas: set[str], patterns: Patterns) -> dict[str, str]:
        steps = self._steps(mirror, shas)
        if not patterns.lines:
            return {step.sha: step.tree for step in steps}
        choice = Choice(patterns)
        sums = self._fold(mirror, steps, 0, choice.after)
        return {sha: _id(value) for sha, value in sums.items()}

    def _find(self, mirror: Path, shas: set[str], path: str) -> dict[str, str]:
        """The id of the plain file at each commit, "" where there is none."""
        name = path.encode("utf-8", "surrogateescape")

        def after(known: str, changes: list[Change]) -> str:
            for change in changes:
                if change.path == name:
                    return change.after.id.decode("ascii") if change.after and change.after.plain else ""
            return known

        return self._fold(mirror, self._steps(mirror, shas), "", after, path)

    def _fold(
        self,
        mirror: Path,
        steps: list[Step],
        start: V,
        after: Callable[[V, list[Change]], V],
        path: str | None = None,
    ) -> dict[str, V]:
        """For each commit what `after` makes of its base's value and of the changes since then."""
        trees = {step.sha: step.tree for step in steps}
        values: dict[str, V] = {}
        for first in range(0, len(steps), BATCH):
            batch = steps[first : first + BATCH]
            pairs = [(trees[step.base] if step.base else _EMPTY_TREE[len(step.tree)], step.tree) for step in batch]
            for step, changes in zip(batch, self._changes(mirror, pairs, path), strict=True):
                values[step.sha] = after(values[step.base] if step.base else start, changes)
        return values

    def _steps(self, mirror: Path, shas: set[str]) -> list[Step]:
        """Each after its base: a parent, where one is asked for too."""
        wanted = "".join(f"{sha}\n" for sha in sorted(shas)).encode()
        options = ("--no-walk=unsorted", "--ignore-missing", "--stdin", "--no-show-signature", "--format=%H %T %P")
        lines = checked(self._git("log", *options, mirror=mirror, stdin=wanted)).text.splitlines()
        records = {sha: (tree, parents) for sha, tree, *parents in (line.split(" ") for line in lines)}
        if lost := shas - records.keys():
            raise MirrorFailed(f"the mirror does not hold the commit {min(lost)}")
        bases = {
            sha: next((each for each in parents if each in records), None) for sha, (_, parents) in records.items()
        }
        return [Step(sha, records[sha][0], base) for sha, base in _base_first(bases)]

    def _changes(self, mirror: Path, pairs: list[tuple[str, str]], path: str | None) -> Iterator[list[Change]]:
        """What differs between the two trees of each pair; of one path, or in that folder, where it is given."""
        given = "".join(f"{before} {after}\n" for before, after in pairs).encode()
        command = (
            "--literal-pathspecs",
            "diff-tree",
            "--stdin",
            "-r",
            "-z",
            "--no-renames",
            "--ignore-submodules=none",
        )
        only = () if path is None else ("--", path)
        output = checked(self._git(*command, *only, mirror=mirror, stdin=given))
        if output.errors.strip():
            raise MirrorFailed(f"trees cannot be read from a mirror: {git_errors.last_lines(output.errors)}")
        return _parsed(output.out)

    def _small_blobs(self, mirror: Path, ids: list[str]) -> dict[str, bytes]:
        sizes = [line.rpartition(" ")[2] for line in self._cat(mirror, "--batch-check", ids).decode().splitlines()]
        small = [id for id, size in zip(ids, sizes, strict=True) if size.isdigit() and int(size) <= FILE_BYTES]
        output = self._cat(mirror, "--batch", small)
        found, start = {}, 0
        for id in small:
            end = output.index(b"\n", start)
            size = int(output[start:end].rpartition(b" ")[2])
            found[id] = output[end + 1 : end + 1 + size]
            start = end + size + 2
        return found

    def _cat(self, mirror: Path, mode: str, ids: list[str]) -> bytes:
        if not ids:
            return b""
        given = "".join(f"{id}\n" for id in ids).encode()
        return checked(self._git("cat-file", mode, mirror=mirror, stdin=given)).out


class Choice:
    """What patterns choose, as a sum of digests; each path is looked at once, however many commits change it."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._chosen: dict[tuple[bytes, bool], bool] = {}

    def after(self, known: int, changes: list[Change]) -> int:
        for change in changes:
            known += self._weight(change.path, change.after) - self._weight(change.path, change.before)
        return known % (1 << 8 * _SUM_BYTES)

    def _weight(self, path: bytes, version: Version | None) -> int:
        if version is None or not self._chooses(path, version.mode == _SUBMODULE):
            return 0
        entry = b"%b %b %b" % (version.mode, version.id, path)
        return int.from_bytes(hashlib.shake_256(entry).digest(_SUM_BYTES), "big")

    def _chooses(self, path: bytes, submodule: bool) -> bool:
        chosen = self._chosen.get((path, submodule))
        if chosen is None:
            text = path.decode("utf-8", "surrogateescape")
            chosen = self._takes_submodule(text) if submodule else bool(self._patterns.says(text))
            self._chosen[path, submodule] = chosen
        return chosen

    def _takes_submodule(self, path: str) -> bool:
        """Its files cannot be seen here, so it is chosen whenever a pattern may choose one of them."""
        said = self._patterns.says(path)
        said = self._patterns.says(f"{path}/") if said is None else said
        return self._patterns.reach(path) if said is None else said


def _id(value: int) -> str:
    return hashlib.sha256(value.to_bytes(_SUM_BYTES, "big")).hexdigest() if value else NO_FILES


def _base_first(parent: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """Those without a parent here are compared with the first of them, and that one with nothing."""
    first = next((sha for sha, base in parent.items() if base is None), None)
    ordered: dict[str, str | None] = {}
    for start in parent:
        chain: list[tuple[str, str | None]] = []
        at: str | None = start
        while at is not None and at not in ordered:
            base = parent[at] or (first if at != first else None)
            chain.append((at, base))
            at = base
        ordered.update(reversed(chain))
    return list(ordered.items())


def _parsed(output: bytes) -> Iterator[list[Change]]:
    """Of `diff-tree --stdin -z`: for each pair a line with both ids, then its changes."""
    changes: list[Change] | None = None
    parts = iter(output.split(b"\0"))
    for part in parts:
        *pairs, facts = part.split(b"\n")
        for _ in pairs:
            if changes is not None:
                yield changes
            changes = []
        if facts and changes is not None:
            changes.append(_change(facts, next(parts)))
    if changes is not None:
        yield changes


def _change(facts: bytes, path: bytes) -> Change:
    before, after, old, new, _ = facts.removeprefix(b":").split(b" ")
    return Change(path, _version(before, old), _version(after, new))


def _version(mode: bytes, id: bytes) -> Version | None:
    return None if mode == _NOTHING else Version(mode, id)
