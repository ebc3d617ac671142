"""Spans of what is done for a bisection, in one trace, whose id anybody can tell: no state is kept for it.

Of the SHA-256 of the bisection's id the first 32 hex digits are the trace's, and the next 16 those of its first span.
OpenTelemetry is imported only where an endpoint is set, and installed only by firstbad[otel].
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import version
from typing import Any

from service.adapters.telemetry.meters import FAILED, result_of
from service.adapters.telemetry.watch import Tracing, Untraced

PATH = "/v1/traces"
#: Seconds that sending may take, and that spans which were not sent yet may take when the process ends.
SEND_S, LAST_S = 5, 2.0
#: The step that a trace begins with.
FIRST = "submit"


def tracing(endpoint: str, service: str) -> Tracing:
    """`endpoint`: of OTLP over HTTP, as http://host:4318; nothing is traced without. `service`: who traces.

    Errors: ValueError where OpenTelemetry is not installed.
    """
    check(endpoint)
    if not endpoint:
        return Untraced()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ids = Ids()
    resource = Resource.create({"service.name": service, "service.version": version("firstbad")})
    provider = TracerProvider(resource=resource, id_generator=ids.generator())
    address = endpoint.rstrip("/")
    exporter = OTLPSpanExporter(endpoint=address if address.endswith(PATH) else f"{address}{PATH}", timeout=SEND_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traced(provider, ids)


def check(endpoint: str) -> None:
    """Errors: ValueError where an endpoint is set and OpenTelemetry is not installed. Without one none is needed."""
    if not endpoint:
        return
    try:
        for needed in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"):
            import_module(needed)
    except ImportError as error:
        raise ValueError(
            f"FIRSTBAD_OTLP_ENDPOINT is set, but OpenTelemetry is not installed ({error}): "
            "install firstbad[otel], or take the setting away"
        ) from error


def ids_of(bisection: str) -> tuple[int, int]:
    """Of its trace and of that trace's first span."""
    digits = hashlib.sha256(bisection.encode()).hexdigest()
    return int(digits[:32], 16), int(digits[32:48], 16)


class Ids:
    """Those of the next span of this thread, where they are not to be chosen at random."""

    def __init__(self) -> None:
        self._next: ContextVar[tuple[int, int] | None] = ContextVar("firstbad_next_span", default=None)

    @contextmanager
    def given(self, ids: tuple[int, int]) -> Iterator[None]:
        token = self._next.set(ids)
        try:
            yield
        finally:
            self._next.reset(token)

    def generator(self) -> Any:
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        following = self._next

        class Given(RandomIdGenerator):
            def generate_trace_id(self) -> int:
                return ids[0] if (ids := following.get()) is not None else super().generate_trace_id()

            def generate_span_id(self) -> int:
                return ids[1] if (ids := following.get()) is not None else super().generate_span_id()

        return Given()


class Traced:
    def __init__(self, provider: Any, ids: Ids) -> None:
        self._provider, self._tracer, self._ids = provider, provider.get_tracer("firstbad.service"), ids

    @contextmanager
    def span(self, name: str, about: dict[str, str]) -> Iterator[None]:
        """Below the one under way, unless that is of another bisection; what is done for none is not traced."""
        from opentelemetry.trace import StatusCode, get_current_span, use_span

        if not about.get("bisection") and not get_current_span().get_span_context().is_valid:
            yield
            return
        span = self._begun(name, about)
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as error:
            if result_of(error) == FAILED:
                span.set_status(StatusCode.ERROR, str(error)[:500])
            raise
        finally:
            span.end()

    def _begun(self, name: str, about: dict[str, str]) -> Any:
        from opentelemetry.context import Context
        from opentelemetry.trace import (
            NonRecordingSpan,
            SpanContext,
            TraceFlags,
            get_current_span,
            set_span_in_context,
        )

        attributes = {f"firstbad.{what}": id for what, id in about.items() if id}
        above = get_current_span()
        current = above.get_span_context().trace_id
        trace, first = ids_of(about["bisection"]) if about.get("bisection") else (current, 0)
        if name == FIRST:
            with self._ids.given((trace, first)):
                return self._tracer.start_span(name, context=Context(), attributes=attributes)
        if current != trace:
            above = NonRecordingSpan(SpanContext(trace, first, is_remote=True, trace_flags=TraceFlags(1)))
        return self._tracer.start_span(name, context=set_span_in_context(above), attributes=attributes)

    def traceparent(self) -> str:
        from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

        found = get_current_span().get_span_context()
        if not found.is_valid:
            return ""
        flags = int(found.trace_flags)
        return f"00-{format_trace_id(found.trace_id)}-{format_span_id(found.span_id)}-{flags:02x}"

    def close(self) -> None:
        """Sends what is left, in the time that there is."""
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(LAST_S)
