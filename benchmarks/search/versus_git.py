"""Probes of a deterministic failure, one at a time, beside real `git bisect run` on the same history."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.search.histories import Parents, merged
from benchmarks.search.repository import Repository
from benchmarks.search.simulate import convicted, deterministic
from benchmarks.search.table import Row


def compare(parents: Parents, truths: list[int]) -> tuple[list[int], list[int], int]:
    """Our probes, git's, and how many answers differ from the truth. Commit 0 is good and the last one bad."""
    ours, theirs, wrong = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.build(Path(folder) / "repository", parents)
        range_ = repository.range(repository.shas[:1], repository.shas[-1])
        for truth in truths:
            sha = repository.shas[truth]
            place = range_.find(sha)
            assert place is not None
            bad = convicted(range_, place)
            git = repository.bisect(
                repository.shas[:1], repository.shas[-1], {sha: int(sha in bad) for sha in repository.shas}
            )
            mine = deterministic(range_, place)
            wrong += (git.answers != {sha}) + (mine.found != sha)
            ours.append(mine.probes)
            theirs.append(len(git.evidence))
    return ours, theirs, wrong


def rows(quick: bool) -> Iterator[Row]:
    n, step = 249, 24 if quick else 2
    ours, theirs, wrong = compare([[], *[[index] for index in range(n)]], list(range(1, n + 1, step)))
    yield Row(
        f"line of {n}, {len(ours)} positions: probes",
        "equal to git",
        f"mean {mean(ours):.2f}, worst {max(ours)}, wrong answers {wrong}",
        f"git: mean {mean(theirs):.2f}, worst {max(theirs)}",
        ours == theirs and not wrong,
    )
    for share in (0.05, 0.1, 0.2):
        parents = merged(n, share, np.random.default_rng(int(share * 100)))
        found = sum(len(mine) > 1 for mine in parents) / len(parents)
        ours, theirs, wrong = compare(parents, list(range(1, len(parents), step)))
        yield Row(
            f"history of {len(parents)}, {found:.0%} merges, {len(ours)} positions: probes",
            "mean at most 1 above git",
            f"mean {mean(ours):.2f}, worst {max(ours)}, wrong answers {wrong}",
            f"git: mean {mean(theirs):.2f}, worst {max(theirs)}",
            mean(ours) <= mean(theirs) + 1 and not wrong,
        )
