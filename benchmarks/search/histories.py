"""Histories to search: lines, and lines with side branches that are merged back."""

from __future__ import annotations

import numpy as np

from service.search import Range

Parents = list[list[int]]


def line(n: int) -> Range:
    return Range.of([f"{index:06d}" for index in range(n)], goods=["good"])


def merged(n: int, merges: float, random: np.random.Generator) -> Parents:
    """Parents by commit, oldest first, of about n commits of which a share are merges of side branches."""
    parents: Parents = [[]]
    tip = 0
    while len(parents) < n:
        if random.random() < merges / (1 - 3 * merges) and len(parents) + 8 < n:
            base = tip
            parents.append([base])
            for _ in range(int(random.integers(0, 4))):
                parents.append([len(parents) - 1])
            side = len(parents) - 1
            parents.append([base])
            parents.append([len(parents) - 1, side])
        else:
            parents.append([tip])
        tip = len(parents) - 1
    return parents


def range_of(parents: Parents) -> Range:
    names = [f"{index:06d}" for index in range(len(parents))]
    by_name = {name: [names[parent] for parent in mine] for name, mine in zip(names, parents, strict=True)}
    return Range.of(names, by_name, goods=["good"])
