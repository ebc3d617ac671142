"""A real git server over HTTPS on loopback: git's own http-backend, with or without a password."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.repositories import QUIET


@dataclass
class GitServer:
    """`commands`: of git's protocol, in order. While `gate` is clear, packs are not sent."""

    port: int
    certificate: Path
    commands: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def url(self, name: str, credentials: str = "") -> str:
        return f"https://{credentials + '@' if credentials else ''}127.0.0.1:{self.port}/{name}"


@contextmanager
def serve(folder: Path, scratch: Path, password: str | None = None, names: Sequence[str] = ()) -> Iterator[GitServer]:
    """All repositories below `folder`; with `password`, for user `ada` only. `names`: that its certificate has too."""
    certificate = _certificate(scratch, names)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    state = GitServer(server.server_port, certificate)
    state.gate.set()
    server.RequestHandlerClass = _handler(folder, state, password)
    with over_tls(server, state):
        try:
            yield state
        finally:
            state.gate.set()


@contextmanager
def over_tls(server: ThreadingHTTPServer, like: GitServer) -> Iterator[ThreadingHTTPServer]:
    """Runs with the certificate of that other one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(like.certificate, like.certificate.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _certificate(scratch: Path, names: Sequence[str]) -> Path:
    certificate, key = scratch / "server.pem", scratch / "server.key"
    subject = [
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        ",".join(["subjectAltName=IP:127.0.0.1", *(f"DNS:{name}" for name in names)]),
    ]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate


def _handler(folder: Path, state: GitServer, password: str | None) -> type[BaseHTTPRequestHandler]:
    expected = None if password is None else "Basic " + base64.b64encode(f"ada:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            state.commands += [command for command in ("ls-refs", "fetch") if f"command={command}".encode() in body]
            if expected is not None and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if b"command=fetch" in body:
                state.asked.set()
                state.gate.wait(60)
            self._backend(body)

        def _backend(self, body: bytes) -> None:
            url = urlsplit(self.path)
            environment = QUIET | {
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "PATH": os.environ["PATH"],
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
