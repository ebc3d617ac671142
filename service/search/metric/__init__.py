"""The search for the commit that made a number worse. Pure, as all of the search."""

from service.search.metric.choice import next_commit
from service.search.metric.drift import steady
from service.search.metric.ends import compare_ends
from service.search.metric.location import known, locate
from service.search.metric.results import Ends, Location, Shape, Steady, Step
from service.search.metric.samples import Interval, Question, Reading, Sample

__all__ = [
    "Ends",
    "Interval",
    "Location",
    "Question",
    "Reading",
    "Sample",
    "Shape",
    "Steady",
    "Step",
    "compare_ends",
    "known",
    "locate",
    "next_commit",
    "steady",
]
