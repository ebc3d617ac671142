"""What was measured, as far as it matters: sums for each commit and bench, and which candidates those commits tell
apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.search.graph import Bools, Floats, Ints, Range
from service.search.metric.samples import Sample

#: The good ends, among commits by index.
GOOD_END = -1


@dataclass(frozen=True, eq=False)
class Table:
    """Cells, one for each commit and bench: how many runs, their sum and their squares' sum about `centre`.

    `commits`: by index in the range, GOOD_END for all good ends. `benches`: numbered in the order of `names`.
    """

    commits: Ints
    benches: Ints
    runs: Floats
    total: Floats
    squares: Floats
    centre: float
    names: tuple[str, ...]

    @property
    def tested(self) -> list[int]:
        """The commits of the range that were measured."""
        return sorted({index for index in self.commits.tolist() if index != GOOD_END})

    def by_bench(self, weights: Floats) -> Floats:
        """Sums of the rows of each bench."""
        found: Floats = (self.benches[None, :] == np.arange(len(self.names))[:, None]).astype(float) @ weights
        return found


def table(range_: Range, samples: Sequence[Sample], values: Floats) -> Table:
    """Errors: ValueError for a sample of a commit that is neither in the range nor a good end of it."""
    names = tuple(dict.fromkeys(one.bench for one in samples))
    where, at = {name: index for index, name in enumerate(names)}, np.zeros(len(samples), dtype=np.int64)
    cells: dict[tuple[int, int], int] = {}
    for row, one in enumerate(samples):
        at[row] = cells.setdefault((_index(range_, one.sha), where[one.bench]), len(cells))
    centre = float(np.median(values)) if len(values) else 0.0
    off = values - centre
    return Table(
        np.array([commit for commit, _ in cells], dtype=np.int64),
        np.array([bench for _, bench in cells], dtype=np.int64),
        np.bincount(at, minlength=len(cells)).astype(float),
        np.bincount(at, off, len(cells)).astype(float),
        np.bincount(at, off**2, len(cells)).astype(float),
        centre,
        names,
    )


def _index(range_: Range, sha: str) -> int:
    index = range_.find(sha)
    if index is not None:
        return index
    if sha in range_.goods:
        return GOOD_END
    raise ValueError(f"{sha} was measured, but is neither in the range nor a good end of it")


@dataclass(frozen=True, eq=False)
class Classes:
    """Candidates that no commit of `places` tells apart are one class, ordered by their first one.

    `of`: by candidate, its class. `rows[p, k]`: place p is at or behind the candidates of class k.
    """

    places: Ints
    of: Ints
    sizes: Floats
    rows: Bools

    def __len__(self) -> int:
        return len(self.sizes)

    def seen_from(self, commits: Ints) -> Bools:
        """The rows of these commits, each a place or the good end, which is behind nothing."""
        rows = np.concatenate([self.rows, np.zeros((1, len(self)), dtype=bool)])
        at = np.searchsorted(self.places, commits)
        found: Bools = rows[np.where(commits == GOOD_END, len(self.places), at)]
        return found


def classes(range_: Range, places: Sequence[int]) -> Classes:
    """`places`: indexes in the range, in order."""
    at = np.array(places, dtype=np.int64)
    if range_.is_line:
        of, kept = np.searchsorted(at, np.arange(len(range_))), np.arange(len(at) + 1)
        sizes = np.bincount(of, minlength=len(at) + 1)
        # No candidate lies behind the last commit when that is a place.
        kept = kept[sizes > 0]
        of = np.searchsorted(kept, of)
        return Classes(at, of, sizes[kept].astype(float), np.arange(len(at))[:, None] >= kept[None, :])
    numbers: dict[int, int] = {}
    of = np.fromiter((numbers.setdefault(mask, len(numbers)) for mask in range_.above(places)), np.int64, len(range_))
    rows = np.array([[mask >> bit & 1 for mask in numbers] for bit in range(len(at))], dtype=bool)
    return Classes(at, of, np.bincount(of).astype(float), rows.reshape(len(at), len(numbers)))
