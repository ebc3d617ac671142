"""A registry of images on this machine: Debian's docker-registry, with a little image in it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import needs
from tests.waiting import eventually

CONFIG = """
version: 0.1
storage: {{inmemory: {{}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
#: Asks everybody for a password.
CLOSED = """
auth: {{htpasswd: {{realm: tests, path: {folder}/passwords}}}}
"""
#: As little of an image as a run needs: all of it would take minutes to be pushed.
LITTLE = """
cd /; tar -c --exclude=__pycache__ --exclude=config-* bin lib lib64 usr/lib64 usr/bin/bash usr/bin/python3 \
    usr/bin/python3.11 usr/lib/*/ld-linux* usr/lib/*/lib[cmz].so* usr/lib/*/libexpat.so* usr/lib/*/libtinfo.so* \
    usr/lib/python3.11/*.py usr/lib/python3.11/encodings usr/lib/python3.11/collections usr/lib/python3.11/lib-dynload \
    usr/lib/python3.11/json usr/lib/python3.11/re usr/lib/python3.11/importlib
"""


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def registry(folder: Path, *, closed: bool = False) -> Iterator[str]:
    """Its host and port."""
    needs("registry")
    port, config = free_port(), folder / "registry.yml"
    (folder / "passwords").touch()
    config.write_text((CONFIG + (CLOSED if closed else "")).format(port=port, folder=folder))
    with (folder / "registry.log").open("wb") as log:
        server = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)

    def answers() -> bool:
        with socket.socket() as there:
            return there.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(answers)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def pushed(host: str, docker_image: str) -> Iterator[str]:
    """The little image in that registry, and on this machine."""
    name = f"{host}/team/image:1"
    little = f"docker run --rm {docker_image} bash -c '{LITTLE}' | docker import - {name}"
    subprocess.run(["bash", "-eo", "pipefail", "-c", little], check=True, capture_output=True)
    run("docker", "push", "--quiet", name)
    yield name
    subprocess.run(["docker", "rmi", name], capture_output=True)
