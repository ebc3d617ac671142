"""`/metrics`: what the database tells of the whole service, and what this process measures of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

from fastapi import APIRouter, Header, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from service.application.ports import StoreBusy
from service.domain.figures import Figures, Tally
from service.doors.bounded import Bounded
from service.doors.metrics.families import families

#: Seconds for which figures are shown again instead of being counted again: for two who look at the same time.
FRESH_S = 5.0
#: Seconds that counting may take. Prometheus gives up after 10.
WITHIN_S = 8.0


class Snapshots:
    """The figures, counted at most every few seconds. What only grows is never shown smaller: to Prometheus that would
    be a restart from 0, where it was a build that is made once more."""

    def __init__(self, count: Callable[[], Figures], fresh_s: float = FRESH_S) -> None:
        self._count, self._fresh_s = count, fresh_s
        self._lock = threading.Lock()
        self._most: dict[tuple[str, str, float], Tally] = {}
        self._last: tuple[float, Figures] | None = None

    def __call__(self) -> Figures:
        with self._lock:
            if self._last is None or monotonic() - self._last[0] > self._fresh_s:
                found = self._count()
                self._last = monotonic(), replace(found, tallies=self._grown(found.tallies))
            return self._last[1]

    def _grown(self, tallies: tuple[Tally, ...]) -> tuple[Tally, ...]:
        for tally in tallies:
            key = (tally.name, tally.label, tally.bound)
            before = self._most.get(key, tally)
            grown = replace(tally, count=max(tally.count, before.count), total=max(tally.total, before.total))
            self._most[key] = grown
        return tuple(self._most.values())


class _Shown(Collector):
    def __init__(self, figures: Figures, local: CollectorRegistry) -> None:
        self._figures, self._local = figures, local

    def collect(self) -> Iterator[Metric]:
        yield from families(self._figures)
        yield from self._local.collect()


def _unknown(why: str) -> Response:
    return Response(f"{why}\n", 503, media_type="text/plain")


def router(count: Callable[[], Figures], local: CollectorRegistry, within_s: float = WITHIN_S) -> APIRouter:
    """`local`: of this process."""
    router = APIRouter()
    asked = Bounded(Snapshots(count))

    @router.get("/metrics", include_in_schema=False)
    async def metrics(accept: str = Header(default="")) -> Response:
        encode, kind = choose_encoder(accept)
        try:
            figures = await asked(within_s)
        except TimeoutError:
            return _unknown(f"the database has not answered within {within_s:g} s")
        except StoreBusy as error:
            return _unknown(str(error))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Shown(figures, local))
        return Response(encode(registry), media_type=kind)

    return router
