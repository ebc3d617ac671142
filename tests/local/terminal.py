"""The firstbad command in a folder, which no service answers."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli import command

FIRSTBAD = Path(sys.executable).with_name("firstbad")


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Terminal:
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Result:
        with TemporaryDirectory() as streams:
            for name in ("in", "out", "err"):
                (Path(streams) / name).touch()
            status = command.run(arguments, self.folder, {**os.environ, **self.env}, Path(streams))
            assert status is not None, "the command has not ended"
            return Result(status, *((Path(streams) / name).read_text("utf-8") for name in ("out", "err")))

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """The installed program itself."""
        env = {**os.environ, **self.env}
        return subprocess.Popen(
            [FIRSTBAD, *arguments], cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
