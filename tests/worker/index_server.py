"""A small real package index: a simple API in JSON with upload times, and wheels that are made as they are put in."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JSON = "application/vnd.pypi.simple.v1+json"
CODE = """
VERSION = "{version}"

def main():
    import sys
    print("{name} {version}", sys.prefix)
    for name in sys.argv[1:]:
        print(name, __import__(name).__file__)
"""


def wheel_of(name: str, version: str, requires: Sequence[str] = (), *, code: str = CODE) -> tuple[str, bytes]:
    """Its file's name and content: one module, a script of the same name that imports what it is told to, a program."""
    info, made = f"{name}-{version}.dist-info", io.BytesIO()
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    files = {
        f"{name}.py": code.format(name=name, version=version),
        f"{info}/METADATA": "".join([*metadata, *(f"Requires-Dist: {each}\n" for each in requires)]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
        f"{name}-{version}.data/scripts/{name}-tool": "#!/bin/sh\necho a tool\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(made, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return f"{name}-{version}-py3-none-any.whl", made.getvalue()


@dataclass
class Index:
    """`asked`: the paths of all requests so far. `status`: what it answers instead of what it has."""

    port: int = 0
    files: dict[str, dict[str, tuple[bytes, str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dated: bool = True
    status: int | None = None
    #: While this is not set, requests are not answered.
    open: threading.Event = field(default_factory=threading.Event)

    def put(self, name: str, version: str, uploaded: str, requires: Sequence[str] = ()) -> None:
        file, content = wheel_of(name, version, requires)
        self.files.setdefault(name, {})[file] = (content, uploaded)

    def resolved(self, name: str) -> int:
        """How often somebody asked what there is of this project."""
        return self.asked.count(f"GET /simple/{name}/")

    def page(self, name: str) -> bytes:
        files = []
        for file, (content, uploaded) in self.files[name].items():
            entry = {"filename": file, "url": f"/files/{name}/{file}", "hashes": _hashes(content)}
            files.append({**entry, "upload-time": uploaded} if self.dated else entry)
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files}).encode()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        parts = path.strip("/").split("/")
        if self.status is not None:
            return self.status, "text/plain", b""
        if parts[0] == "simple" and parts[1] in self.files:
            return HTTPStatus.OK, JSON, self.page(parts[1])
        if parts[0] == "files" and parts[2] in self.files.get(parts[1], {}):
            return HTTPStatus.OK, "application/octet-stream", self.files[parts[1]][parts[2]][0]
        return HTTPStatus.NOT_FOUND, "text/plain", b""


def _hashes(content: bytes) -> dict[str, str]:
    return {"sha256": hashlib.sha256(content).hexdigest()}


@contextmanager
def serving() -> Iterator[Index]:
    """On all addresses of this machine, so that containers reach it too."""
    index = Index()
    index.open.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            index.asked.append(f"{self.command} {self.path}")
            index.open.wait()
            status, kind, content = index.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            # So that each resolution is seen in `asked`.
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    server.daemon_threads = True
    index.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield index
    finally:
        index.open.set()
        server.shutdown()
        server.server_close()
