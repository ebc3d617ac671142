"""Patterns as in .gitignore that choose files of a commit: those of a wheel, those of its compiled files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

_WILD = re.compile(r"[*?\[\\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: The repository may have folders of these names, but then the pattern needs no slash before them.
_OF_A_MACHINE = re.compile(r"~|/(dev|etc|home|mnt|proc|root|sys|tmp|usr|var)(/|$)")
#: In the place of an id where the patterns choose no file of a commit.
NO_FILES = "no files"
MOST_CHARACTERS = 500
#: A regular expression with more of them takes for ever on a path that was made for it.
MOST_STARS = 5


class BadPattern(ValueError):
    """`index`: which of the patterns."""

    def __init__(self, index: int, pattern: str, what: str, advice: str) -> None:
        super().__init__(f"{pattern[:80]!r} {what}")
        self.index = index
        self.pattern = pattern
        self.what = what
        self.advice = advice


@dataclass(frozen=True)
class Patterns:
    """What git would ignore if `lines` were a .gitignore is chosen. Paths are from the repository's root."""

    lines: tuple[str, ...]

    def says(self, path: str) -> bool | None:
        """True: chosen; False: taken out again by a pattern with `!`; None: no pattern is about it."""
        # To a regular expression a newline is not what every other character is.
        return self._spec.check_file(path.replace("\n", "\ufffd"), separators=()).include

    def reach(self, folder: str) -> bool:
        """False only if no pattern can choose anything in the folder, at any depth."""
        parts = folder.split("/")
        return any(begun[: len(parts)] == parts[: len(begun)] for begun in self._begun)

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.lines, backend="simple")

    @cached_property
    def _begun(self) -> list[list[str]]:
        """Of each pattern that chooses, the folders that it begins with, written out."""
        return [_literal(line) for line in self.lines if not line.startswith("!")]


def parse(lines: Sequence[str]) -> Patterns:
    """Errors: BadPattern for what matches nothing, or other than it seems to."""
    for index, line in enumerate(lines):
        _check(index, line)
    if lines and all(line.startswith("!") for line in lines):
        raise BadPattern(0, lines[0], "takes files out where no pattern takes any in", 'write "*" before it')
    return Patterns(tuple(lines))


def _check(index: int, line: str) -> None:
    body = line.removeprefix("!")
    parts = body.strip("/").split("/")
    wrong: tuple[str, str] | None = None
    if len(line) > MOST_CHARACTERS or _CONTROL.search(line):
        wrong = "is no single line of at most 500 characters", "write one pattern for each entry"
    elif not body.strip(" /"):
        wrong = "is empty", "leave it out, or write * for every file"
    elif line.startswith("#"):
        wrong = "is a comment in .gitignore", "write \\# for a name that begins with #"
    elif ".." in parts or _OF_A_MACHINE.match(body):
        wrong = "leads out of the repository", "write where it lies in the repository, like csrc/** or /setup.py"
    elif "." in parts or "//" in body:
        wrong = "can match nothing", "write a path from the repository's root like csrc/**, without ./ and //"
    elif line.startswith("!") and line.endswith("/"):
        wrong = "takes no file out", f"write {line}** to take out what the folder holds"
    elif line.endswith("**/"):
        wrong = "is about folders alone", f"write {line[:-1]} for all that they hold"
    elif len(re.findall(r"\*+", line)) > MOST_STARS:
        wrong = f"has more than {MOST_STARS} wildcards", "write several patterns"
    elif _unreadable(line):
        wrong = "is no pattern", "write it as in .gitignore, like csrc/**, *.cu or CMakeLists.txt"
    if wrong is not None:
        raise BadPattern(index, line, *wrong)


def _unreadable(line: str) -> bool:
    """Git drops such a pattern without a word."""
    try:
        (pattern,) = GitIgnoreSpec.from_lines([line], backend="simple").patterns
    except (GitIgnorePatternError, re.error):
        return True
    return pattern.include is None


def _literal(line: str) -> list[str]:
    """Git looks in every folder for a name alone."""
    parts = line.rstrip().removesuffix("/").split("/")
    if len(parts) == 1:
        return []
    return list(takewhile(lambda part: not _WILD.search(part), parts[1:] if not parts[0] else parts))
