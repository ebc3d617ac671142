"""Which commit to measure next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from service.search.conclusion import Found
from service.search.graph import Range, mass_below
from service.search.metric.location import belief, locate
from service.search.metric.samples import Question, Sample


def next_commit(
    range_: Range,
    samples: Sequence[Sample],
    question: Question,
    *,
    skipped: Collection[str] = (),
    in_flight: Sequence[str] = (),
    cost: Mapping[str, float] | None = None,
) -> str | None:
    """None when nothing is left to ask. May be an end, and may be a commit that was measured already. `cost`: seconds
    that one run of a commit takes, its build with it where it has none yet."""
    if isinstance(locate(range_, samples, question, skipped=skipped).conclusion, Found):
        return None
    mass = mass_below(range_, belief(range_, samples))
    value = mass * (1 - mass)
    value[[index for sha in (*skipped, *in_flight) if (index := range_.find(sha)) is not None]] = -1.0
    best = int(np.argmax(value))
    return range_.shas[best] if value[best] > 0 else None
