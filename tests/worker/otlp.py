"""A receiver of traces: OTLP over HTTP, as a collector speaks it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """Ids in hexadecimal digits; times in nanoseconds of the epoch."""

    name: str
    trace: str
    id: str
    parent: str
    begin: int
    end: int
    failed: bool
    attributes: dict[str, Any]


@dataclass
class Receiver:
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services |= {a.value.string_value for a in resource.resource.attributes if a.key == "service.name"}
            for scope in resource.scope_spans:
                self.spans += [_span(each) for each in scope.spans]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def below(self, parent: Span) -> list[Span]:
        return [span for span in self.spans if span.parent == parent.id]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _span(found: Any) -> Span:
    values = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found.attributes}
    ids = (found.trace_id.hex(), found.span_id.hex(), found.parent_span_id.hex())
    times = (found.start_time_unix_nano, found.end_time_unix_nano)
    return Span(found.name, *ids, *times, found.status.code == 2, values)
