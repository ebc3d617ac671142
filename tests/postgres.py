"""A throwaway PostgreSQL cluster: no port, its socket in a folder of its own, gone with the tests."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

_numbers = itertools.count(1)


def binaries() -> Path | None:
    """Where initdb and pg_ctl are; Debian keeps them out of the PATH, and its newest version is taken."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    places = [*debian[::-1], *([Path(found).parent] if found else [])]
    return next((path for path in places if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


@contextmanager
def cluster(durability: str = "-c fsync=off") -> Iterator[str]:
    """Yields the URL of its maintenance database; `url_of` names another one."""
    programs = binaries()
    assert programs is not None
    # Not pytest's folder: PostgreSQL refuses root, and another user could not enter it. Sockets need a short path.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    data = folder / "data"
    if os.geteuid() == 0:
        os.chown(folder, *_nobody())
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} {durability} -c max_connections=60"
    try:
        _run(programs / "initdb", "-D", data, "-U", "firstbad", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        _run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://firstbad@/postgres?host={quote(str(folder), safe='')}"
        finally:
            _run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def url_of(cluster_url: str, database: str) -> str:
    return cluster_url.replace("@/postgres?", f"@/{database}?")


@contextmanager
def database(cluster_url: str, template: str = "template1") -> Iterator[str]:
    """The URL of a database of its own, which is a copy of that one."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(cluster_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield url_of(cluster_url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _nobody() -> tuple[int, int]:
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _run(*command: str | Path) -> None:
    user = dict(zip(("user", "group"), _nobody(), strict=True)) if os.geteuid() == 0 else {}
    groups = {"extra_groups": []} if user else {}
    # To a file and not a pipe: the server keeps what it inherits open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run([str(part) for part in command], stdout=output, stderr=output, cwd="/", **user, **groups)
        output.seek(0)
        assert done.returncode == 0, output.read().decode()
