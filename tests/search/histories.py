"""Random histories as plain lists of parents."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import strategies as st

from service.search import Range

LONG = bool(os.environ.get("FIRSTBAD_LONG"))


@st.composite
def parent_lists(draw: st.DrawFn, most: int = 30, merges: bool = True) -> list[list[int]]:
    """Parents by commit, oldest first; commit 0 is the only root and the last commit reaches every other one."""
    n = draw(st.integers(2, most))
    parents: list[list[int]] = [[]]
    for index in range(1, n):
        back = draw(st.sampled_from([1, 1, 1, 2, 3, 5])) if merges else 1
        mine = {max(0, index - back)}
        if merges and index > 2 and draw(st.integers(0, 3)) == 0:
            mine.add(draw(st.integers(0, index - 1)))
        parents.append(sorted(mine, reverse=True))
    heads = set(range(n - 1)) - {parent for mine in parents for parent in mine}
    parents[-1] = sorted({*parents[-1], *heads}, reverse=True)
    return parents


def descendants(parents: Sequence[Sequence[int]], start: int) -> set[int]:
    found = {start}
    for index in range(start + 1, len(parents)):
        if found & set(parents[index]):
            found.add(index)
    return found


def range_of(parents: Sequence[Sequence[int]]) -> Range:
    return Range.of(
        [str(i) for i in range(len(parents))], {str(i): [str(p) for p in ps] for i, ps in enumerate(parents)}
    )
