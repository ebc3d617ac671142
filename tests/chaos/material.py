"""What all runs start from, made once: the example, databases with tables, and an engine's folder with the image."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from examples.generate import Options, generate, request
from service.adapters.database import migrate
from tests import postgres
from tests.chaos.plan import COMMITS, FIRST_BAD
from tests.repositories import NewCommit, build_repository, git
from tests.waiting import eventually

IMAGE = "firstbad-test:latest"
BASE = Path(__file__).parents[2] / "docker" / "base.sh"
CLOCK = Path(__file__).with_name("clock.c")
#: Of the repository without wheels: what it holds, and where it breaks.
SMALL, SMALL_BAD = 8, 5


@dataclass(frozen=True)
class Ends:
    path: Path
    good: str
    bad: str


@dataclass(frozen=True)
class Material:
    folder: Path

    @property
    def cluster(self) -> Path:
        return self.folder / "cluster"

    @property
    def sqlite(self) -> Path:
        return self.folder / "firstbad.sqlite"

    @property
    def clock(self) -> Path:
        return self.folder / "clock.so"

    @property
    def engine(self) -> Path:
        return self.folder / "engine"

    @cached_property
    def commits(self) -> list[str]:
        """The SHAs of the example, good first."""
        return git(self.folder / "tinyserve", "rev-list", "--reverse", "--first-parent", "main").split()[-COMMITS - 1 :]

    @cached_property
    def small(self) -> list[str]:
        return git(self.folder / "small", "rev-list", "--reverse", "main").split()

    @property
    def first_bad(self) -> str:
        return self.commits[FIRST_BAD]

    def request(self, good: int, bad: int) -> dict[str, Any]:
        """Its check takes a moment longer than it has to, so that there is something to break."""
        asked = request(Ends(self.folder / "tinyserve", self.commits[good], self.commits[bad]))
        return {**asked, "check": f"{asked['check']}\nsleep 1"}

    def small_request(self, script: str = "sleep 0.2") -> dict[str, Any]:
        ends = {"good": self.small[0], "bad": self.small[-1]}
        judged = f"{script}\ntest $(cat n) -lt {SMALL_BAD}"
        return {"project": "source", "repo": str(self.folder / "small"), **ends, "script": judged}


def make(folder: Path, *, engine: bool) -> Material:
    """`engine`: with what an own container engine needs."""
    made = Material(folder)
    generate(folder / "tinyserve", Options(commits=COMMITS, first_bad=FIRST_BAD))
    build_repository(folder / "small", [NewCommit(files={"n": str(n)}) for n in range(SMALL)])
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(made.clock), str(CLOCK)], check=True)
    _make_cluster(made.cluster)
    migrate.upgrade(f"sqlite:///{made.sqlite}")
    if engine:
        _make_engine(made.engine)
    return made


def nobody() -> dict[str, Any]:
    """Arguments of Popen: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def given(folder: Path) -> None:
    """To the user of PostgreSQL."""
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", pwd.getpwnam("nobody").pw_gid)


def program(name: str) -> str:
    """One of PostgreSQL's."""
    found = postgres.binaries()
    assert found is not None, "PostgreSQL is missing: apt-get install postgresql"
    return str(found / name)


def serve_command(data: Path, sockets: Path) -> list[str]:
    options = ["listen_addresses=", f"unix_socket_directories={sockets}", "fsync=off", "max_connections=60"]
    return [program("postgres"), "-D", str(data), *(part for option in options for part in ("-c", option))]


def url_of(sockets: Path, database: str = "firstbad") -> str:
    return f"postgresql://firstbad@/{database}?host={quote(str(sockets), safe='')}"


def _make_cluster(data: Path) -> None:
    data.mkdir(mode=0o700)
    given(data)
    how = ["-U", "firstbad", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    subprocess.run(
        [program("initdb"), "-D", str(data), *how], check=True, stdout=subprocess.DEVNULL, cwd="/", **nobody()
    )
    sockets = data.parent / "sockets"
    sockets.mkdir()
    given(sockets)
    with _running(serve_command(data, sockets), data.parent / "postgres.log", **nobody()) as server:
        eventually(lambda: _answers(sockets), 60, "PostgreSQL answers")
        with psycopg.connect(url_of(sockets, "postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE firstbad")
        migrate.upgrade(url_of(sockets))
        server.terminate()


def _answers(sockets: Path) -> bool:
    try:
        psycopg.connect(url_of(sockets, "postgres")).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def _running(command: list[str], log: Path, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/", **how)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def engine_command(data: Path, run: Path) -> list[str]:
    """A dockerd that shares nothing with the machine's: neither its network, in which each keeps bridges and rules, nor
    the names of a containerd that may run already."""
    names = ["--containerd-namespace", "firstbad-chaos", "--containerd-plugins-namespace", "firstbad-chaos-plugins"]
    alone = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    apart = ["unshare", "--net", "--"]
    places = ["--data-root", str(data), "--exec-root", str(run / "exec"), "--pidfile", str(run / "pid")]
    return [*apart, "dockerd", *places, "-H", engine_url(run), *names, *alone]


def engine_url(run: Path) -> str:
    return f"unix://{run}/docker.sock"


def engine_answers(run: Path) -> bool:
    return subprocess.run(["docker", "-H", engine_url(run), "info"], capture_output=True).returncode == 0


def _make_engine(data: Path) -> None:
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode:
        subprocess.run([BASE, IMAGE, "bookworm"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = data.with_name("engine-run")
    run.mkdir()
    with _running(engine_command(data, run), data.with_name("engine.log")):
        eventually(lambda: engine_answers(run), 60, "the container engine answers", 0.2)
        with subprocess.Popen(["docker", "save", IMAGE], stdout=subprocess.PIPE) as saved:
            subprocess.run(
                ["docker", "-H", engine_url(run), "load"], stdin=saved.stdout, check=True, stdout=subprocess.DEVNULL
            )
    shutil.rmtree(run)
