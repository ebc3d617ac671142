"""What many commits changed: lines by path and how often some words occur, read by one git command and forgotten soon.

A diff can be of any size, and anyone may have written it. So what is kept of a commit has a bound, and when all of
them together take too much or too long, their paths alone must do.
"""

from __future__ import annotations

import io
import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from threading import Lock

from service.adapters.git_command import GitCommand, MirrorFailed
from service.adapters.git_errors import checked
from service.adapters.git_mirror import full
from service.search.priors import Change, words_of

#: Of so many commits the diffs are read, of more the paths alone.
TEXTS = 4000
#: Bytes kept of one commit's diff, and bytes and seconds after which no more of all diffs are read.
COMMIT_BYTES, ALL_BYTES, ALL_S = 256 * 1024, 256 * 1024 * 1024, 20.0
#: Paths kept of one commit: one that touches more says nothing about any of them.
PATHS = 1000
#: A larger file counts as binary: its diff is neither made nor shown.
FILE_BYTES = 1024 * 1024
#: Questions, each of one mirror, that are remembered.
QUESTIONS_KEPT = 8

#: Files that nobody of the project wrote. Their paths count, their text does not.
_FOREIGN = """
3rdparty/** 3rd_party/** third_party/** third-party/** vendor/** vendored/** node_modules/** *.lock *.min.js *.min.css
*.map *.svg *.ipynb *.pb.go *_pb2.py *.po package-lock.json pnpm-lock.yaml go.sum
"""
_FORMAT = "--format=%x01%H%x02%s"
_BEGIN = re.compile(rb"[\n\0]\x01(?=[0-9a-f]{40,64}\x02)")
#: No beginning of a record is longer: of a piece that may end within one, so much waits for the next piece.
_LONGEST = 70
_COUNTS = re.compile(rb"(\d+|-)\t(\d+|-)\t(?:([^\0]+)|\0([^\0]*)\0([^\0]*))\0")
#: Lines of a diff that are neither content nor the head of a hunk.
_NO_CONTENT = re.compile(rb"^(?:[^-+@\n]|--- |\+\+\+ ).*", re.MULTILINE)

Question = tuple[Path, frozenset[str]]


class Changes:
    """`folder`: where a file for git is put that names what nobody of the project wrote."""

    def __init__(self, git: GitCommand, folder: Path, all_bytes: int = ALL_BYTES) -> None:
        self._git = git
        self._all_bytes = all_bytes
        self._attributes = folder / "gitattributes"
        wanted = "".join(f"**/{pattern} -diff\n" for pattern in _FOREIGN.split())
        if not self._attributes.exists() or self._attributes.read_text() != wanted:
            fresh = folder / f"gitattributes.{id(self)}"
            fresh.write_text(wanted)
            fresh.replace(self._attributes)
        self._known: OrderedDict[Question, dict[str, Change]] = OrderedDict()
        self._lock = Lock()

    def of(self, mirror: Path, shas: Collection[str], words: Collection[str]) -> dict[str, Change]:
        """As History.changes says. Errors: MirrorFailed."""
        question = (mirror, frozenset(words))
        with self._lock:
            known = self._known.get(question, {})
        if any(sha not in known for sha in shas):
            known = self._read(mirror, shas, question[1])
            self._remember(question, known)
        return {sha: known[sha] for sha in shas}

    def _remember(self, question: Question, found: dict[str, Change]) -> None:
        with self._lock:
            self._known[question] = found
            self._known.move_to_end(question)
            while len(self._known) > QUESTIONS_KEPT:
                self._known.popitem(last=False)

    def _read(self, mirror: Path, shas: Collection[str], words: frozenset[str]) -> dict[str, Change]:
        given = "".join(f"{full(sha)}\n" for sha in shas).encode()
        found = self._texts(mirror, given, words) if len(shas) <= TEXTS else None
        if found is None:
            found = self._paths(mirror, given, words)
        if lost := set(shas) - found.keys():
            raise MirrorFailed(f"the mirror does not hold the commit {min(lost)}")
        return {sha: found[sha] for sha in shas}

    def _texts(self, mirror: Path, given: bytes, words: frozenset[str]) -> dict[str, Change] | None:
        """None when it was too much."""
        found: dict[str, Change] = {}
        records = Records(lambda record: _put(found, _change(record, words)), self._all_bytes)
        options = ("--numstat", "--patch", "--unified=0", "--find-renames")
        settings = ("-c", f"core.attributesFile={self._attributes}", "-c", f"core.bigFileThreshold={FILE_BYTES}")
        read = partial(self._git, *settings, *_log(*options), mirror=mirror, stdin=given)
        output = read(limit_s=ALL_S, into=records)
        if records.full or "Timeout: the command" in output.errors:
            return None
        checked(output)
        records.end()
        return found

    def _paths(self, mirror: Path, given: bytes, words: frozenset[str]) -> dict[str, Change]:
        found: dict[str, Change] = {}
        records = Records(lambda record: _put(found, _named(record, words)))
        checked(self._git(*_log("--name-only", "--no-renames"), mirror=mirror, stdin=given, into=records))
        records.end()
        return found


class Records(io.BytesIO):
    """Takes git's output piece by piece and gives the beginning of each commit's part on, until all of them together
    are more than `most` bytes.

    A path that looks like the beginning of a part cuts its own commit short, and no more.
    """

    def __init__(self, take: Callable[[bytes], None], most: int | None = None) -> None:
        super().__init__()
        self._take = take
        self._most = most
        self.full = False
        self._bytes = 0
        self._head = b""
        self._rest = b"\n"

    def write(self, piece: bytes) -> int:  # type: ignore[override]
        self._bytes += len(piece)
        self.full = self.full or (self._most is not None and self._bytes > self._most)
        if not self.full:
            *whole, self._rest = _BEGIN.split(self._rest + piece)
            for part in whole:
                self._give(self._head + part)
                self._head = b""
            self._head = (self._head + self._rest[:-_LONGEST])[:COMMIT_BYTES]
            self._rest = self._rest[-_LONGEST:]
        return len(piece)

    def end(self) -> None:
        """Nothing more will come."""
        self._give(self._head + self._rest)

    def _give(self, part: bytes) -> None:
        if b"\x02" in part:
            self._take(part[:COMMIT_BYTES])


def _put(found: dict[str, Change], change: Change) -> None:
    found[change.sha] = change


def _log(*options: str) -> tuple[str, ...]:
    """Merges are compared with their first parent."""
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--no-mailmap")
    walk = ("--no-walk=unsorted", "--ignore-missing", "--stdin", "--diff-merges=first-parent", "--root")
    return ("log", *walk, "-z", *plain, *options, _FORMAT)


def _change(record: bytes, words: frozenset[str]) -> Change:
    """Of a record of `--numstat -p -z`: the counts by path, each ended by a NUL, one more NUL, the diff."""
    sha, subject, rest = _split(record)
    paths: dict[str, int] = {}
    at = 1
    while (found := _COUNTS.match(rest, at)) is not None:
        at = found.end()
        added, removed, path, old, new = found.groups()
        lines = int(added) + int(removed) if added.isdigit() and removed.isdigit() else 0
        for name in (path,) if path is not None else (old, new):
            if len(paths) < PATHS:
                paths[_text(name)] = lines
    return _counted(sha, paths, subject + b"\n" + _NO_CONTENT.sub(b"", rest[at + 1 :]), words)


def _named(record: bytes, words: frozenset[str]) -> Change:
    sha, subject, rest = _split(record)
    paths = [_text(path) for path in rest[1:].split(b"\0") if path][:PATHS]
    return _counted(sha, dict.fromkeys(paths, 0), subject, words)


def _split(record: bytes) -> tuple[str, bytes, bytes]:
    sha, _, rest = record.partition(b"\x02")
    subject, _, rest = rest.partition(b"\0")
    return sha.decode("ascii"), subject, rest


def _counted(sha: str, paths: dict[str, int], text: bytes, words: frozenset[str]) -> Change:
    # Identifiers are ASCII, so that any encoding that holds ASCII will do.
    counts = words_of(text.decode("latin-1"))
    return Change(sha, paths, {word: counts[word] for word in words & counts.keys()}, counts.total())


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
