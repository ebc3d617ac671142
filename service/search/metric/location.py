"""Which commit made the number worse."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from service.search.conclusion import Found, Searching
from service.search.graph import Floats, Range
from service.search.metric.results import Location
from service.search.metric.samples import Question, Sample


def locate(range_: Range, samples: Sequence[Sample], question: Question, *, skipped: Collection[str] = ()) -> Location:
    """The bad end is the last commit of the range, the good ends are `range_.goods`."""
    weights = belief(range_, samples)
    top = int(np.argmax(weights))
    below = {
        s.sha: float(weights[range_.ancestors(i)].sum()) if (i := range_.find(s.sha)) is not None else 0.0
        for s in samples
    }
    if weights[top] >= question.confidence:
        return Location(Found(range_.shas[top], float(weights[top])), bad=below)
    return Location(Searching(len(range_), 1.0), bad=below)


def belief(range_: Range, samples: Sequence[Sample]) -> Floats:
    shas = list(dict.fromkeys(s.sha for s in samples if range_.find(s.sha) is not None))
    where = {sha: bit for bit, sha in enumerate(shas)}
    values = np.array([s.value for s in samples])
    bits = np.array([where.get(s.sha, -1) for s in samples])
    found = np.zeros(len(range_))
    fits: dict[int, float] = {}
    for index, mask in enumerate(range_.above([range_.find(sha) for sha in shas])):  # type: ignore[misc]
        if mask not in fits:
            worse = np.array([bit >= 0 and bool(mask >> int(bit) & 1) for bit in bits])
            rest = values.var() * len(values) * 1e-6 + 1e-12
            rest += sum(
                float(((values[side] - values[side].mean()) ** 2).sum()) for side in (worse, ~worse) if side.any()
            )
            fits[mask] = -0.5 * (len(values) - 2) * np.log(rest)
        found[index] = fits[mask]
    found = np.exp(found - found.max())
    return found / found.sum()
