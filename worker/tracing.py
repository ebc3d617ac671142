"""Traces: a span for each order, below that of the service which sent it, with a child for each of its parts.

OpenTelemetry is imported only where an endpoint is set, and installed only by firstbad[otel].
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pydantic import BaseModel

from worker.contract import BuildResult, ProbeResult
from worker.errors import NodeFault
from worker.reading import Head
from worker.spans import Part, recording

#: Seconds that spans which were not sent yet may take when the worker ends, and that sending some may take.
LAST_S, SEND_S = 2.0, 5
PATH = "/v1/traces"

#: Is told what came of an order; None when it was cancelled.
Tell = Callable[[BaseModel | None], None]


class Tracing(Protocol):
    def order(self, head: Head, trace: str) -> contextlib.AbstractContextManager[Tell]: ...
    def close(self) -> None: ...


class Untraced:
    @contextlib.contextmanager
    def order(self, head: Head, trace: str) -> Iterator[Tell]:
        yield lambda result: None

    def close(self) -> None:
        return


def tracing(endpoint: str, node: str) -> Tracing:
    """`endpoint`: of OTLP over HTTP, as http://host:4318; empty: nothing is traced. Errors: NodeFault."""
    if not endpoint:
        return Untraced()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        message = f"FIRSTBAD_OTLP_ENDPOINT is set, but OpenTelemetry is not installed: {error}"
        raise NodeFault("otel", message, "Install firstbad[otel], or take the setting away.") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "firstbad-worker", "host.name": node}))
    address = endpoint.rstrip("/")
    exporter = OTLPSpanExporter(endpoint=address if address.endswith(PATH) else f"{address}{PATH}", timeout=SEND_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traced(provider, node)


class Traced:
    def __init__(self, provider: Any, node: str) -> None:
        self._provider, self._tracer, self._node = provider, provider.get_tracer("firstbad.worker"), node

    @contextlib.contextmanager
    def order(self, head: Head, trace: str) -> Iterator[Tell]:
        from opentelemetry.trace import SpanKind, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = TraceContextTextMapPropagator().extract({"traceparent": trace})
        bound = {f"firstbad.{name}": value for name, value in head.bound.items()}
        attributes = {**bound, "firstbad.node": self._node}
        span = self._tracer.start_span(head.kind, context=above, kind=SpanKind.CONSUMER, attributes=attributes)
        try:
            with recording() as parts:
                yield lambda result: _tell(span, result)
        finally:
            self._children(parts.found, set_span_in_context(span))
            span.end()

    def _children(self, parts: list[Part], above: Any) -> None:
        from opentelemetry.trace import StatusCode, set_span_in_context

        contexts: list[Any] = []
        for part in parts:
            within = contexts[part.within] if part.within is not None else above
            span = self._tracer.start_span(part.name, context=within, start_time=_ns(part.begin))
            if part.error:
                span.set_status(StatusCode.ERROR, part.error)
            span.end(end_time=_ns(part.end))
            contexts.append(set_span_in_context(span))

    def close(self) -> None:
        """Sends what is left, in the time that there is."""
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(LAST_S)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _tell(span: Any, result: BaseModel | None) -> None:
    from opentelemetry.trace import StatusCode

    if result is None:
        span.set_attribute("firstbad.cancelled", True)
        return
    for name, value in _facts(result).items():
        span.set_attribute(f"firstbad.{name}", value)
    fault = getattr(result, "fault", None)
    if fault is not None:
        span.set_attribute("firstbad.fault", fault.kind)
        span.set_status(StatusCode.ERROR, fault.message[:500])


def _facts(result: BaseModel) -> dict[str, str | int | float | bool]:
    """Of what came out, what one looks for in traces."""
    if isinstance(result, BuildResult):
        found = result.failure
        facts: dict[str, Any] = {"origin": result.origin}
    elif isinstance(result, ProbeResult):
        found = result.outcome
        facts = {"gpu_leased_s": result.gpu_leased_s, "gpu_used_s": result.gpu_used_s}
    else:
        return {}
    if found is not None:
        facts |= {"ended_in": found.ended_in, "exit_status": found.exit_status, "timed_out": found.timed_out}
    return {name: value for name, value in facts.items() if value is not None}
