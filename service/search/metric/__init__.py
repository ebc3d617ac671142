"""The search for the commit that made a number worse. Pure, as all of the search."""

from service.search.metric.ranks import MOST, Ends, compare_ends, judge

__all__ = ["Ends", "MOST", "compare_ends", "judge"]
