"""An HTTP server that answers as it is told, one request after the other: what a service does on a bad day."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Said:
    """`cut`: the connection ends before the body does."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class Script:
    url: str = ""
    answers: list[Said] = field(default_factory=list)
    #: Method, path and headers of each request.
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


def problem(status: int, **headers: str) -> Said:
    told = {"type": "/problems/x", "title": "X", "status": status, "detail": f"it is {status}", "advice": "wait"}
    return Said(status, json.dumps(told).encode(), {"Content-Type": "application/problem+json", **headers})


@contextmanager
def scripted() -> Iterator[Script]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            script.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            said = script.answers.pop(0)
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body) + said.cut))
            self.end_headers()
            self.wfile.write(said.body)
            self.close_connection = said.cut

        do_GET = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
