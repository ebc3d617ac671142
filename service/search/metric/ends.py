"""Whether the two ends differ, looked at after every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.search.metric.results import Ends
from service.search.metric.samples import Interval, Question, Sample


def compare_ends(good: Sequence[Sample], bad: Sequence[Sample], question: Question) -> Ends:
    """Errors: ValueError for a number that is not finite."""
    first, second = (np.array([one.value for one in side]) for side in (good, bad))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a metric is no finite number")
    shown = f"good end {first.tolist()}, bad end {second.tolist()}"
    if min(len(first), len(second)) < 4:
        return Ends("unsure", f"more runs are needed: {shown}")
    sign = -1.0 if question.better == "higher" else 1.0
    gap = sign * float(second.mean() - first.mean())
    error = float(np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))) + 1e-9 * abs(gap)
    size = Interval(gap, gap - 2 * error, gap + 2 * error)
    if gap > 3.5 * error:
        return Ends("differ", f"the bad end is worse: {shown}", size, float(first.std(ddof=1)), relative=False)
    if gap < -3.5 * error:
        return Ends("reversed", f"the bad end is better: {shown}", size, float(first.std(ddof=1)), relative=False)
    verdict = "unsure" if min(len(first), len(second)) < question.runs else "alike"
    return Ends(verdict, f"not told apart: {shown}", size, float(first.std(ddof=1)), relative=False)  # type: ignore[arg-type]
