"""Which commit made the number worse."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from service.search.conclusion import Found, Searching, Suspects
from service.search.graph import Range
from service.search.metric.results import Location
from service.search.metric.samples import Question, Sample
from service.search.metric.state import examine

CAUTION = 1.0


def locate(range_: Range, samples: Sequence[Sample], question: Question, *, skipped: Collection[str] = ()) -> Location:
    """The bad end is the last commit of the range, the good ends are `range_.goods`."""
    state = examine(range_, samples, question)
    places = state.posterior.places
    top = int(np.argmax(places))
    stated = 1 - CAUTION * (1 - float(places[top]))
    first = int(np.flatnonzero(state.classes.of == top)[0])
    if stated >= question.confidence and state.classes.sizes[top] == 1:
        return Location(Found(range_.shas[first], stated))
    ramp = 1 - float(places.sum())
    if 1 - CAUTION * (1 - ramp) >= question.confidence:
        return Location(Suspects(tuple(range_.shas), "ramp"))
    if len(samples) > 400:
        return Location(Suspects(tuple(range_.shas), "exhausted"))
    return Location(Searching(len(range_), 1.0))
