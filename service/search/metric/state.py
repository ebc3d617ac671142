"""Where a search stands: the samples, what they add up to, and the belief in each history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from service.search.graph import Range
from service.search.metric.hypotheses import Posterior, posterior
from service.search.metric.model import Model, model
from service.search.metric.samples import Question, Sample
from service.search.metric.scale import Scaled, scaled
from service.search.metric.table import Classes, Table, classes, table


@dataclass(frozen=True, eq=False)
class State:
    scaled: Scaled
    table: Table
    classes: Classes
    model: Model
    posterior: Posterior


def examine(range_: Range, samples: Sequence[Sample], question: Question) -> State:
    return _examined(range_, tuple(samples), question)


# What is asked next, and what is known, are asked for in turn.
@lru_cache(maxsize=4)
def _examined(range_: Range, samples: tuple[Sample, ...], question: Question) -> State:
    found = scaled(samples, question, range_.goods, range_.shas[-1])
    cells = table(range_, samples, found.values)
    apart = classes(range_, cells.tested)
    made = model(cells, len(range_) - 1)
    return State(found, cells, apart, made, posterior(made, apart))
