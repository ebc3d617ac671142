"""What a prior saves, and what a misleading one costs: one worker, a deterministic failure."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.search.histories import line
from benchmarks.search.simulate import convicted, deterministic
from benchmarks.search.table import Row
from examples.generate import Options, generate
from examples.request import CHECK, SERVE
from service.adapters.git_history import GitHistory
from service.application.cases import Wanted
from service.application.clues import clues_of
from service.domain.bisection import Reproduction, Request, Serve
from service.domain.evidence import Frame, Signature
from service.domain.recipe import Recipe, SandboxKind
from service.search import UNKNOWN, Evidence, Found, Range, Searching, conclusion, next_probes
from service.search.priors import EVEN, Change, Clues, asked_words, weights, words_of
from tests.observe.logs import found_in


def rows(quick: bool, cases: Path | None) -> Iterator[Row]:
    yield _predictor(60 if quick else 1000)
    yield from _example(3 if quick else 15)
    for path in sorted(cases.glob("*.json")) if cases else ():
        yield _case(path)
    if cases is None:
        yield Row("traceback prior on real histories", "half of git's", "not run: give --cases DIR")
    yield from _misled(8 if quick else 1)
    yield from _wide(24 if quick else 3)
    yield from _flaky(4 if quick else 100)


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


def _example(seeds: int) -> Iterator[Row]:
    """By the service's own reader of histories, with the clues that it takes from the log of the example's server."""
    clues = example_clues()
    ours, plain, misled, seconds = [], [], [], []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            example = generate(Path(folder) / "example", Options(seed=seed))
            history = GitHistory(Path(folder) / "mirrors", allow_file=True)
            repo = str(example.path)
            history.refresh(repo)
            range_ = history.range(repo, (example.good,), example.bad)
            begun = time.perf_counter()
            prior = weights(list(history.changes(repo, range_.shas, asked_words(clues)).values()), clues)
            seconds.append(time.perf_counter() - begun)
        truth = range_.find(example.first_bad)
        assert truth is not None
        ours.append(deterministic(range_, truth, prior=prior).probes)
        plain.append(deterministic(range_, truth).probes)
        if seed == 0:
            misled = [deterministic(range_, place, prior=prior).probes for place in range(len(range_))]
    yield Row(
        f"traceback prior on the example repository, {seeds} seeds: probes, median",
        "half of git's",
        f"{median(ours):g}, worst {max(ours)}; what its commits changed read in {median(seconds):.2f} s",
        f"as git: {median(plain):g}",
        median(ours) <= median(plain) / 2,
    )
    yield Row(
        "the same traceback, the first bad commit anywhere in turn, 249 positions: probes",
        "worst 9",
        f"worst {max(misled)}, mean {mean(misled):.2f}",
        "as git: worst 8",
        max(misled) <= 9,
    )


def example_clues() -> Clues:
    shown = found_in("tinyserve.log")
    frames, outer = (tuple(Frame(one.file, one.function) for one in some) for some in (shown.frames, shown.outer))
    signature = Signature(str(shown.kind), shown.type, shown.message, frames, outer, said=shown.said)
    reproduction = Reproduction(serve=Serve(SERVE), check=CHECK)
    request = Request("r", ("good",), "bad", reproduction, Recipe("source"), SandboxKind.PROCESS)
    found = clues_of(request, Wanted(signature, "start"))
    assert found is not None
    return found


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


def _wide(step: int) -> Iterator[Row]:
    """Several workers: here nothing but the even share of the belief bounds what a prior may cost."""
    range_ = line(249)
    for width in (2, 4, 8):
        plain = [deterministic(range_, truth, width) for truth in range(0, len(range_), step)]
        random, done = np.random.default_rng(5), []
        for believed in (1, 5, 19):
            prior = _mixed(range_, random.choice(len(range_), believed, replace=False).tolist())
            done += [deterministic(range_, truth, width, prior) for truth in range(0, len(range_), step)]
        rounds, before = ([one.elapsed for one in some] for some in (done, plain))
        yield Row(
            f"N=249, {width} workers, prior pointed at the wrong commits, {len(done)} positions: rounds",
            "",
            f"worst {max(rounds):g}, mean {mean(rounds):.2f}",
            f"without: worst {max(before):g}, mean {mean(before):.2f}",
        )


def _mixed(range_: Range, believed: list[int]) -> dict[str, float]:
    """As `weights` mixes: an even share for every commit."""
    prior = dict.fromkeys(range_.shas, EVEN / len(range_))
    for place in believed:
        prior[range_.shas[place]] += (1 - EVEN) / len(believed)
    return prior


def _flaky(seeds: int) -> Iterator[Row]:
    """Why a flaky failure is searched without a prior. A prior for the choice alone: what it holds for settled is then
    searched on without it, until the runs alone suffice."""
    uses = {"none": (False, False), "for the choice": (True, False), "for the answer too": (True, True)}
    for helps in (True, False):
        told = []
        for name, (choice, answer) in uses.items():
            done = list(_flaky_searches(seeds, helps, choice, answer))
            right = [one for _, one in done if one is not None]
            told.append(f"{name}: {mean(runs for runs, _ in done):.1f} runs, {mean(right):.1%} right")
        kind = "as good as the best published predictor" if helps else "pointed at three wrong commits"
        yield Row(f"N=249, flaky (10 % and 30 %), a prior {kind}, {seeds} seeds", "", "; ".join(told))


def _flaky_searches(seeds: int, helps: bool, choice: bool, answer: bool) -> Iterator[tuple[int, bool | None]]:
    """Runs, and whether the answer is right; None where there were only odds."""
    range_, chances = line(249), ranks(249)
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        order = random.permutation(len(range_))
        if helps:
            truth = int(order[random.choice(len(range_), p=chances)])
            prior = {range_.shas[place]: float(share) for place, share in zip(order, chances, strict=True)}
        else:
            truth, prior = int(order[-1]), _mixed(range_, order[:3].tolist())
        bad, evidence = convicted(range_, truth), Evidence()
        while isinstance(said := conclusion(range_, evidence, prior if answer else None, UNKNOWN), Searching):
            probes = next_probes(range_, evidence, prior if choice else None, noise=UNKNOWN)
            sha = (probes or next_probes(range_, evidence, noise=UNKNOWN))[0]
            fails = random.random() >= 0.3 if sha in bad else random.random() < 0.1
            evidence = evidence.plus(sha, "bad" if fails else "good")
        yield len(evidence), said.sha == range_.shas[truth] if isinstance(said, Found) else None
