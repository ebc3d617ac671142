"""Who looks on while things are done: binds ids to log lines, measures, and traces where an endpoint is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from structlog.contextvars import bound_contextvars

from service.adapters.telemetry.meters import Meters
from service.application.ports import Bisections, Transaction

IDS = frozenset({"bisection", "probe", "build", "attempt"})


class Tracing(Protocol):
    def span(self, name: str, about: dict[str, str]) -> AbstractContextManager[None]: ...
    def traceparent(self) -> str:
        """Of the span under way, as W3C writes it; empty where there is none."""

    def close(self) -> None: ...


class Untraced:
    def span(self, name: str, about: dict[str, str]) -> AbstractContextManager[None]:
        return nullcontext()

    def traceparent(self) -> str:
        return ""

    def close(self) -> None:
        return


class Telemetry:
    """Implements Watch."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.meters = Meters()
        self.tracing = tracing or Untraced()

    @contextmanager
    def doing(self, what: str, **about: str) -> Iterator[None]:
        ids = {name: about[name] for name in sorted(IDS) if about.get(name)}
        with bound_contextvars(**ids), self.tracing.span(what, about), self.meters.step(what, about.get("topic")):
            yield


class WatchedBisections:
    """The database, with each transaction measured."""

    def __init__(self, bisections: Bisections, meters: Meters) -> None:
        self._bisections, self._meters = bisections, meters

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._meters.transaction(), self._bisections.transaction() as tx:
            yield tx

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._meters.transaction(), self._bisections.reading() as tx:
            yield tx

    def trouble(self) -> str | None:
        return self._bisections.trouble()
