"""How long a choice takes, and how much memory, beside `git rev-list --bisect` on the same history."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.search.histories import line, merged, range_of
from benchmarks.search.repository import Repository, git
from benchmarks.search.simulate import convicted
from benchmarks.search.table import Row
from service.search import UNKNOWN, Evidence, Noise, Range, next_probes


def rows(quick: bool) -> Iterator[Row]:
    yield _row("249 commits in a line", line(249), 5.0)
    yield _row("249 commits in a line, flaky", line(249), None, UNKNOWN)
    yield _row("10,000 commits in a line", line(10_000), 20.0)
    yield _row("10,000 commits in a line, flaky", line(10_000), 20.0, UNKNOWN)
    n = 20_000 if quick else 100_000
    parents = merged(n, 0.1, np.random.default_rng(1))
    reference = _git(parents)
    yield _row(f"{n:,} commits, 10 % merges", range_of(parents), 1000.0, reference=reference)
    yield _row(f"{n:,} commits, 10 % merges, flaky", range_of(parents), 1000.0, UNKNOWN, reference)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Row("the same: peak memory of this process", "500 MB", f"{peak:.0f} MB", "", peak < 500)


def _row(name: str, range_: Range, limit_ms: float | None, noise: Noise | None = None, reference: str = "") -> Row:
    taken = sorted(_choices(range_, noise))
    middle, worst = taken[len(taken) // 2], taken[-1]
    return Row(
        f"{name}: one choice",
        f"{limit_ms:g} ms" if limit_ms else "",
        f"median {middle:.2f} ms, longest {worst:.2f} ms of {len(taken)}",
        reference,
        None if limit_ms is None else worst <= limit_ms,
    )


def _choices(range_: Range, noise: Noise | None) -> list[float]:
    """Milliseconds of each choice of a search, at most 25 of them."""
    truth = len(range_) // 3
    bad = convicted_quickly(range_, truth)
    next_probes(line(20), Evidence(), noise=noise)
    evidence, taken = Evidence(), []
    while len(taken) < 25:
        begun = time.perf_counter()
        probes = next_probes(range_, evidence, noise=noise)
        taken.append((time.perf_counter() - begun) * 1000)
        if not probes:
            break
        evidence = evidence.plus(probes[0], "bad" if bad(probes[0]) else "good")
    return taken


def convicted_quickly(range_: Range, truth: int) -> Callable[[str], bool]:
    if range_.is_line:
        return convicted(range_, truth).__contains__

    def is_bad(sha: str) -> bool:
        index = range_.find(sha)
        return index is not None and bool(range_.ancestors(index)[truth])

    return is_bad


def _git(parents: list[list[int]]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.build(Path(folder) / "repository", parents)
        begun = time.perf_counter()
        git(repository.path, "rev-list", "--bisect", repository.shas[-1], "--not", repository.shas[0])
        return f"git rev-list --bisect: {(time.perf_counter() - begun) * 1000:.0f} ms"
