"""Benches that drift: an end measured again now and then shows it."""

from __future__ import annotations

from collections.abc import Sequence

from service.search.metric.results import Steady
from service.search.metric.samples import Reading


def steady(readings: Sequence[Reading]) -> Steady:
    """`readings` in order of time, of all benches."""
    return Steady(tuple(one.sample for one in readings))
