from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from service.web import create_app
from tests.cli import command
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

FIRSTBAD = Path(sys.executable).with_name("firstbad")
#: Nothing listens there; the way to this machine itself must not lead over it.
NO_PROXY = "http://127.0.0.1:9"
OURS = ("FIRSTBAD_", "NO_COLOR", "FORCE_COLOR", "TTY_", "COLUMNS", "LINES", "TERM")


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Terminal:
    """The firstbad command, each time in a process of its own."""

    url: str
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, typed: bytes = b"") -> Result:
        with TemporaryDirectory() as streams:
            for name, held in (("in", typed), ("out", b""), ("err", b"")):
                (Path(streams) / name).write_bytes(held)
            status = command.run(arguments, self.folder, self._env(), Path(streams))
            assert status is not None, "the command has not ended"
            return Result(status, *((Path(streams) / name).read_bytes().decode() for name in ("out", "err")))

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
        """The installed program itself."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([FIRSTBAD, *arguments], cwd=self.folder, env=self._env(), **streams)

    def _env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return {**kept, "FIRSTBAD_URL": self.url, "TERM": "xterm-256color", "HTTP_PROXY": NO_PROXY, **self.env}

    def with_env(self, **env: str) -> Terminal:
        return Terminal(self.url, self.folder, {**self.env, **env})


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[FakeFlow, str]]:
    flow = FakeFlow()
    with serving(create_app(flow)) as url:
        yield flow, url


@pytest.fixture
def flow(served: tuple[FakeFlow, str]) -> FakeFlow:
    served[0].reset()
    return served[0]


@pytest.fixture
def terminal(served: tuple[FakeFlow, str], flow: FakeFlow, tmp_path: Path) -> Terminal:
    return Terminal(served[1], tmp_path)
