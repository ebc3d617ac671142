"""Where to look first: weights for the candidates from what the failure says.

A failure names files, functions, options and identifiers; a commit changes paths and text. Each commit is scored as a
document against the failure as a query (BM25), the score is read as log-odds, and the result is mixed with an even
share for every commit, because a traceback shows where a fault surfaced and not always where it was made.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

#: Share of the belief that is spread evenly, whatever the clues say.
EVEN = 0.15
#: What a match counts by where the clue stands; the n-th innermost file counts FILE / n ** DECAY.
FILE, OUTER, FUNCTION, WORD, PART = 1.0, 0.35, 0.5, 0.15, 0.08
DECAY = 0.25
#: Saturation and length normalisation, the customary values of BM25.
K1, B = 1.2, 0.75
#: A commit that changes nothing but documents or tests is this much less likely to break anything.
INERT_ODDS = 0.2

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_INERT = re.compile(r"(^|/)(docs?|tests?|\.github|\.buildkite)/|\.(md|rst|txt)$|(^|/)(test_[^/]*|conftest)\.py$")


@dataclass(frozen=True)
class Change:
    """What a commit changed: lines by path, and how often each word occurs in its diff, hunk headers and subject.

    `length`: of all that text in words, where `words` holds only those that somebody asked for.
    """

    sha: str
    paths: Mapping[str, int]
    words: Mapping[str, int] = field(default_factory=dict)
    length: int | None = None


@dataclass(frozen=True)
class Clues:
    """What a failure says. `files` of the project's frames, innermost first; `outer` files of the frames that only lead
    there; `functions` of the frames; `words`: identifiers of the message, options of the command."""

    files: Sequence[str] = ()
    outer: Sequence[str] = ()
    functions: Sequence[str] = ()
    words: Sequence[str] = ()


def weights(changes: Sequence[Change], clues: Clues) -> dict[str, float] | None:
    """A weight for each commit, summing to 1; None when no commit matches any clue."""
    scores = score(changes, clues)
    if not any(scores):
        return None
    best = max(scores)
    odds = [math.exp(points - best) * _odds(change) for points, change in zip(scores, changes, strict=True)]
    total = sum(odds)
    even = EVEN / len(changes)
    return {change.sha: even + (1 - EVEN) * mine / total for change, mine in zip(changes, odds, strict=True)}


def score(changes: Sequence[Change], clues: Clues) -> list[float]:
    """BM25 of each commit, where the files that it changes are the terms of one field and its words those of another.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
    """
    wanted_files, wanted_words = _wanted_files(clues), _wanted_words(clues)
    files = _bm25(_by_file(changes, wanted_files), wanted_files, [float(len(change.paths)) for change in changes])
    named = [[_words_of_path(path) for path in change.paths] for change in changes]
    by_word = [_found(wanted_words, [change.words, *paths]) for change, paths in zip(changes, named, strict=True)]
    lengths = [
        float(_length(change) + sum(bag.total() for bag in paths)) for change, paths in zip(changes, named, strict=True)
    ]
    words = _bm25(by_word, wanted_words, lengths)
    return [one + other for one, other in zip(files, words, strict=True)]


def pointers(changes: Sequence[Change], clues: Clues, most: int = 2) -> tuple[str, ...]:
    """The clues that weigh most among those that any commit matches: files where there are any, else words."""
    files = [path for bag in _by_file(changes, _wanted_files(clues)) for path in bag]
    if files:
        return tuple(path for path in dict.fromkeys((*clues.files, *clues.outer)) if path in set(files))[:most]
    known = {word for change in changes for word in change.words}
    known |= {word for change in changes for path in change.paths for word in _words_of_path(path)}
    return tuple(name for name in dict.fromkeys((*clues.functions, *clues.words)) if name.lower() in known)[:most]


def asked_words(clues: Clues) -> frozenset[str]:
    """The words whose counts `weights` looks at."""
    return frozenset(_wanted_words(clues))


def words_of(text: str) -> Counter[str]:
    """Identifiers of a text in lower case, and the parts of those that are joined by underscores."""
    found: Counter[str] = Counter()
    for name, count in Counter(_IDENTIFIER.findall(text)).items():
        lower = name.lower()
        found[lower] += count
        parts = [part for part in lower.split("_") if len(part) > 2]
        if parts != [lower]:
            for part in parts:
                found[part] += count
    return found


def _wanted_files(clues: Clues) -> dict[str, float]:
    wanted = dict.fromkeys(clues.outer, OUTER)
    return wanted | {path: FILE / (place + 1) ** DECAY for place, path in enumerate(dict.fromkeys(clues.files))}


def _wanted_words(clues: Clues) -> dict[str, float]:
    wanted: dict[str, float] = {}
    for names, weight in ((clues.words, WORD), (clues.functions, FUNCTION)):
        for name in names:
            for word in words_of(name):
                mine = weight if word == name.lower() else PART
                wanted[word] = max(wanted.get(word, 0.0), mine)
    return wanted


def _by_file(changes: Sequence[Change], wanted: Mapping[str, float]) -> list[dict[str, float]]:
    """The wanted files that each commit changes, with the square root of the changed lines.

    A traceback's path may be absolute, or start inside the package.
    """
    by_name: dict[str, list[str]] = {}
    for path in wanted:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found = []
    for change in changes:
        lines: Counter[str] = Counter()
        for path, count in change.paths.items():
            for file in by_name.get(path.rpartition("/")[2], ()):
                if path == file or file.endswith("/" + path) or path.endswith("/" + file):
                    lines[file] += max(count, 1)
        found.append({file: math.sqrt(count) for file, count in lines.items()})
    return found


@lru_cache(maxsize=1 << 16)
def _words_of_path(path: str) -> Counter[str]:
    return words_of(path)


def _found(wanted: Mapping[str, float], bags: Sequence[Mapping[str, int]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for bag in bags:
        for word in wanted.keys() & bag.keys():
            found[word] = found.get(word, 0.0) + bag[word]
    return found


def _length(change: Change) -> int:
    return sum(change.words.values()) if change.length is None else change.length


def _bm25(bags: Sequence[Mapping[str, float]], wanted: Mapping[str, float], lengths: Sequence[float]) -> list[float]:
    """Weighted by term. A long document, a commit that touches everything, gets less for each match."""
    mean = sum(lengths) / len(lengths) or 1.0
    total = [0.0] * len(bags)
    for term, weight in wanted.items():
        holding = [place for place, bag in enumerate(bags) if bag.get(term)]
        rarity = math.log(1 + (len(bags) - len(holding) + 0.5) / (len(holding) + 0.5))
        for place in holding:
            count = bags[place][term]
            norm = K1 * (1 - B + B * lengths[place] / mean)
            total[place] += weight * rarity * count * (K1 + 1) / (count + norm)
    return total


def _odds(change: Change) -> float:
    inert = bool(change.paths) and all(_INERT.search(path) for path in change.paths)
    return INERT_ODDS if inert else 1.0
