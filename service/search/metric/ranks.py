"""Verdicts from a number that varies from run to run, such as a throughput: samples are compared, never two numbers.

A commit is like the good end, or like the bad end, or it cannot be told yet and needs more trials. The tests are by
rank, so that one slow run among many decides nothing, and by ratio, so that units do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Better = Literal["higher", "lower"]

#: One commit's samples may be taken for an end's at this error, an end's for the other's at that one: the ends are
#: looked at after every run, some fifteen times, each time at a fifth of the whole.
LEVEL, ENDS_LEVEL = 0.05, 0.002
#: Numbers that never vary tell ends apart after so many runs of each: a coin may fall the same way a few times.
STEADY = 5
#: Trials after which more of them will not settle it.
MOST = 12


@dataclass(frozen=True)
class Ends:
    """Whether the two ends differ: `unsure` wants more trials at both, `alike` refuses the bisection, and `why` says so
    with both samples."""

    verdict: Literal["differ", "unsure", "alike"]
    p_value: float
    why: str


def compare_ends(good: Sequence[float], bad: Sequence[float], better: Better, level: float = ENDS_LEVEL) -> Ends:
    """The bad end must be worse beyond doubt. `level` is the chance to see this when both ends are the same."""
    p_value = _p_worse(good, bad, better)
    if p_value <= level and min(len(good), len(bad)) >= STEADY:
        return Ends("differ", p_value, f"the bad end is worse than the good end (p = {p_value:.2g})")
    shown = f"good end {_shown(good)}, bad end {_shown(bad)}, {better} is better, p = {p_value:.2g}"
    if min(len(good), len(bad)) < MOST:
        return Ends("unsure", p_value, f"more trials are needed at both ends: {shown}")
    return Ends("alike", p_value, f"the bad end is not worse than the good end beyond doubt: {shown}")


def judge(
    samples: Sequence[float], good: Sequence[float], bad: Sequence[float], better: Better, level: float = LEVEL
) -> Literal["good", "bad", "unsure"]:
    """Unlike one end and not unlike the other is that other's verdict; unlike both goes by the middle between them."""
    if not len(samples):
        return "unsure"
    worse_than_good = _p_worse(good, samples, better) <= level
    better_than_bad = _p_worse(samples, bad, better) <= level
    if worse_than_good and better_than_bad:
        return _by_the_middle(samples, good, bad, better, level)
    if worse_than_good:
        return "bad"
    return "good" if better_than_bad else "unsure"


def _p_worse(one: Sequence[float], other: Sequence[float], better: Better) -> float:
    """The chance to see `other` so much worse than `one` were both the same. Source: Mann and Whitney (1947)."""
    if not len(one) or not len(other):
        return 1.0
    first, second = _upwards(one, better), _upwards(other, better)
    if _steady(first, second):
        return 0.0 if second[0] < first[0] else 1.0
    # Loading scipy takes longer than all the rest of this package, and only a number needs it.
    from scipy.stats import mannwhitneyu

    pooled = np.concatenate([first, second])
    exact = len(np.unique(pooled)) == len(pooled) and len(pooled) <= 2 * MOST
    found = mannwhitneyu(first, second, alternative="greater", method="exact" if exact else "asymptotic")
    return float(found.pvalue)


def _by_the_middle(
    samples: Sequence[float], good: Sequence[float], bad: Sequence[float], better: Better, level: float
) -> Literal["good", "bad", "unsure"]:
    """Which side of the point half way between the ends' medians, by ratio where all numbers are positive.

    Source: Wilcoxon's signed-rank test (1945).
    """
    sets = [np.asarray(values, dtype=float) for values in (samples, good, bad)]
    if all((values > 0).all() for values in sets):
        sets = [np.log(values) for values in sets]
    mine, goods, bads = (values if better == "higher" else -values for values in sets)
    off = mine - (np.median(goods) + np.median(bads)) / 2
    if _steady(mine, goods, bads):
        return "bad" if off[0] < 0 else "good"
    from scipy.stats import wilcoxon

    if wilcoxon(off, alternative="less").pvalue <= level:
        return "bad"
    return "good" if wilcoxon(off, alternative="greater").pvalue <= level else "unsure"


def _steady(*several: np.ndarray) -> bool:
    """No run differs from another of the same commit, and some commit was run more than once."""
    return all(np.ptp(values) == 0 for values in several) and sum(len(values) for values in several) > len(several)


def _upwards(values: Sequence[float], better: Better) -> np.ndarray:
    """Larger is better."""
    found = np.asarray(values, dtype=float)
    if not np.isfinite(found).all():
        raise ValueError(f"a metric is no finite number: {_shown(values)}")
    return found if better == "higher" else -found


def _shown(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
