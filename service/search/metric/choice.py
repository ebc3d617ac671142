"""Which commit to measure next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from service.search.conclusion import Searching
from service.search.graph import Range
from service.search.metric.location import concluded, once_more, sought
from service.search.metric.samples import Question, Sample
from service.search.metric.state import examine
from service.search.metric.steps import above, places
from service.search.metric.table import GOOD_END
from service.search.metric.value import value


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
    if not samples:
        return range_.shas[-1]
    state = examine(range_, samples, question)
    steps = above(state, question, places(state, question.confidence))
    ahead = value(range_, state, skipped, in_flight, cost, sought(question, state, steps))
    if not isinstance(concluded(range_, state, question, steps, skipped, ahead), Searching):
        return None
    further = once_more(range_, state, question, steps, skipped)
    if further is None or _sha(range_, further) in in_flight:
        further = ahead.best
    return _sha(range_, further)


def _sha(range_: Range, index: int) -> str:
    return range_.goods[0] if index == GOOD_END else range_.shas[index]
