"""What a prior saves, and what a misleading one costs: one worker, a deterministic failure."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.search.histories import line
from benchmarks.search.simulate import deterministic
from benchmarks.search.table import Row
from examples.generate import Example, Options, generate
from service.search import Range
from service.search.priors import Change, Clues, weights, words_of

#: What the example's failure prints, innermost frame first.
EXAMPLE_CLUES = Clues(
    files=("tinyserve/v1/attention/backends/linear_attn.py", "tinyserve/v1/worker/model_runner.py"),
    outer=("tinyserve/v1/worker/worker.py",),
    functions=("build_for_graph_capture", "_dummy_run", "_capture_graphs", "capture_model"),
    words=tuple(
        words_of(
            "AssertionError: Linear attention supports graph capture of uniform decode batches only: "
            "tokens cannot be queries of num_speculative_tokens speculative config method mtp"
        )
    ),
)


def rows(quick: bool, cases: Path | None) -> Iterator[Row]:
    yield _predictor(60 if quick else 1000)
    yield _example(3 if quick else 15)
    for path in sorted(cases.glob("*.json")) if cases else ():
        yield _case(path)
    if cases is None:
        yield Row("traceback prior on real histories", "half of git's", "not run: give --cases DIR")
    yield from _misled(8 if quick else 1)


def ranks(n: int) -> np.ndarray:
    """Chance of each rank for a predictor that names the true commit first in 36 %, has it within the top 0.7 % at the
    median and at 7 % in the mean: a geometric law for what it knows, an even one for what it does not."""
    places = np.arange(1, n + 1)

    def law(unknown: float) -> np.ndarray:
        ratio = brentq(lambda ratio: (1 - unknown) * (1 - ratio) / (1 - ratio**n) + unknown / n - 0.36, 0.01, 0.99)
        known = (1 - ratio) / (1 - ratio**n) * ratio ** (places - 1.0)
        return (1 - unknown) * known + unknown / n

    unknown = brentq(lambda unknown: float(law(unknown) @ places) / n - 0.07, 0.01, 0.3)
    return law(unknown)


def _predictor(seeds: int) -> Row:
    range_, random = line(249), np.random.default_rng(1)
    chances = ranks(len(range_))
    done, best = [], []
    for seed in range(seeds):
        order = random.permutation(len(range_))
        weights_ = np.zeros(len(range_))
        weights_[order] = chances
        prior = dict(zip(range_.shas, weights_.tolist(), strict=True))
        truth = int(order[random.choice(len(range_), p=chances)])
        done.append(deterministic(range_, truth, prior=prior).probes)
        best += [_best_tree(weights_)] if seed < 10 else []
    bits = -float((chances * np.log2(chances)).sum())
    return Row(
        f"N=249, a prior as good as the best published predictor, {seeds} seeds: probes",
        "mean 3.7, worst 9",
        f"mean {mean(done):.2f}, worst {max(done)}",
        f"plain: mean 7.97, worst 8; entropy of that prior {bits:.2f}; best tree of any depth {mean(best):.2f}",
        mean(done) <= 3.7 and max(done) <= 9,
    )


def _best_tree(weights_: np.ndarray) -> float:
    """Mean probes of the best search on a line whose worst case is not bounded. Source: Knuth, Optimum binary search
    trees (1971)."""
    n = len(weights_)
    below = np.concatenate([[0.0], np.cumsum(weights_)])
    cost, root = np.zeros((n, n)), np.diag(np.arange(n))
    for size in range(1, n):
        for low in range(n - size):
            high = low + size
            splits = np.arange(root[low, high - 1], min(root[low + 1, high], high - 1) + 1)
            costs = cost[low, splits] + cost[splits + 1, high]
            root[low, high] = splits[costs.argmin()]
            cost[low, high] = costs.min() + below[high + 1] - below[low]
    return float(cost[0, n - 1])


def _example(seeds: int) -> Row:
    ours, plain = [], []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            example = generate(Path(folder) / "example", Options(seed=seed))
            changes = _changes(example)
        range_ = Range.of([change.sha for change in changes])
        truth = range_.find(example.first_bad)
        assert truth is not None
        ours.append(deterministic(range_, truth, prior=weights(changes, EXAMPLE_CLUES)).probes)
        plain.append(deterministic(range_, truth).probes)
    return Row(
        f"traceback prior on the example repository, {seeds} seeds: probes, median",
        "half of git's",
        f"{median(ours):g}, worst {max(ours)}",
        f"as git: {median(plain):g}",
        median(ours) <= median(plain) / 2,
    )


def _changes(example: Example) -> list[Change]:
    """Parents first. Words are those of the subject, hunk headers and changed lines."""
    found = []
    form = ["--reverse", "--no-renames", "--format=%x00%H%x01%s%x01", f"{example.good}..{example.bad}"]
    for numbers, texts in zip(
        _log(example.path, "--numstat", *form), _log(example.path, "-p", "-U0", *form), strict=True
    ):
        sha, _, counts = numbers.split("\x01")
        _, subject, diff = texts.split("\x01")
        rows_ = [line.split("\t") for line in counts.splitlines() if line.count("\t") == 2]
        paths = {path: sum(int(part) for part in parts if part.isdigit()) for *parts, path in rows_}
        lines = [line for line in diff.splitlines() if not line.startswith(("diff ", "index ", "--- ", "+++ "))]
        found.append(Change(sha, paths, words_of("\n".join([subject, *lines]))))
    return found


def _log(path: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(path), "log", *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace").split("\0")[1:]


def _case(path: Path) -> Row:
    """A real history. Files are taken in the order in which the case lists them."""
    case = json.loads(path.read_text())
    range_, changes = _range_of(case), [_change(commit) for commit in case["commits"]]
    evidence = case["evidence"]
    clues = Clues(evidence["traceback"], evidence["outer"], evidence["functions"], evidence["words"])
    turned = Clues(evidence["traceback"][::-1], evidence["outer"], evidence["functions"], evidence["words"])
    truth = range_.find(case["first_bad"])
    assert truth is not None
    ours, other, plain = (
        deterministic(range_, truth, prior=prior).probes
        for prior in (weights(changes, clues), weights(changes, turned), None)
    )
    return Row(
        f"traceback prior on {path.stem}, {len(range_)} commits: probes",
        "half of git's",
        f"{ours} (files in the other order: {other})",
        f"as git: {plain}",
        max(ours, other) <= plain / 2,
    )


def _range_of(case: dict[str, Any]) -> Range:
    return Range.of(
        [commit["sha"] for commit in case["commits"]],
        {commit["sha"]: commit["parents"] for commit in case["commits"]},
        goods=[case["good"]],
    )


def _change(commit: dict[str, Any]) -> Change:
    words = words_of(commit.get("subject", "")) if commit.get("subject") else {}
    return Change(commit["sha"], {path: added + removed for path, added, removed in commit["paths"]}, words)


def _misled(step: int) -> Iterator[Row]:
    """The prior believes in a few commits anywhere, the truth is everywhere else in turn."""
    range_, random = line(249), np.random.default_rng(5)
    worst, done = 0, []
    for believed in (1, 5, 19):
        prior = {range_.shas[place]: 1.0 for place in random.choice(len(range_), believed, replace=False)}
        probes = [deterministic(range_, truth, prior=prior).probes for truth in range(0, len(range_), step)]
        worst, done = max(worst, *probes), done + probes
    yield Row(
        f"N=249, prior pointed at the wrong commits, {len(done)} positions: probes",
        "worst 9",
        f"worst {worst}, mean {mean(done):.2f}",
        "as git: worst 8",
        worst <= 9,
    )
