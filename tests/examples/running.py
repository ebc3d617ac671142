"""Builds commits of a generated repository, installs them, and runs what they install."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uv

UV = uv.find_uv_bin()
MODEL = "tiny/next-80b"
LISTENING = re.compile(r"Application startup complete, listening on (http://\S+)")


def speculative(tokens: int) -> list[str]:
    return ["--speculative-config", f'{{"method": "mtp", "num_speculative_tokens": {tokens}}}']


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, errors="replace")


def checked(*command: str | Path, cwd: Path | None = None) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def git(repository: Path, *arguments: str) -> str:
    return checked("git", *arguments, cwd=repository).strip()


def check_out(repository: Path, commit: str, folder: Path) -> Path:
    """The files of a commit, without git."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=repository, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    return folder


def build(source: Path, out: Path, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return run(UV, "build", "--offline", "--wheel", "--out-dir", out, source, env=env)


def install(wheel: Path, venv: Path) -> subprocess.CompletedProcess[str]:
    checked(UV, "venv", "--offline", "--quiet", venv)
    return run(UV, "pip", "install", "--offline", "--python", venv / "bin" / "python", wheel)


@dataclass
class Builds:
    """Wheels and environments by commit, each made once."""

    folder: Path
    repository: Path
    _wheels: dict[str, Path] = field(default_factory=dict)
    _venvs: dict[str, Path] = field(default_factory=dict)

    def source(self, commit: str) -> Path:
        folder = self.folder / commit / "source"
        return folder if folder.exists() else check_out(self.repository, commit, folder)

    def wheel(self, commit: str) -> Path:
        if commit not in self._wheels:
            done = build(self.source(commit), self.folder / commit / "wheel")
            assert done.returncode == 0, done.stderr
            [self._wheels[commit]] = (self.folder / commit / "wheel").glob("*.whl")
        return self._wheels[commit]

    def venv(self, commit: str) -> Path:
        if commit not in self._venvs:
            done = install(self.wheel(commit), self.folder / commit / "venv")
            assert done.returncode == 0, done.stderr
            self._venvs[commit] = self.folder / commit / "venv"
        return self._venvs[commit]

    def tinyserve(self, commit: str) -> Path:
        return self.venv(commit) / "bin" / "tinyserve"


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)
    _arriving: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._arriving.put(line.decode(errors="replace").rstrip("\n"))
        self._arriving.put(None)

    def url(self, within_s: float = 60) -> str | None:
        """Where it listens; None when it ends before that. Raises queue.Empty when it does neither."""
        deadline = time.monotonic() + within_s
        while (line := self._arriving.get(timeout=max(0, deadline - time.monotonic()))) is not None:
            self.lines.append(line)
            if found := LISTENING.search(line):
                return found[1]
        self.process.wait()
        return None

    def pids(self) -> set[int]:
        """Of every process that wrote a line so far."""
        return {int(pid) for line in self.lines for pid in re.findall(r"\(\w+ pid=(\d+)\)", line)}


@contextmanager
def serving(tinyserve: Path, *options: str, env: Mapping[str, str] = {}) -> Iterator[Server]:
    command: Sequence[str | Path] = [tinyserve, "serve", MODEL, "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, **env})
    server = Server(process)
    reader = threading.Thread(target=server.read)
    reader.start()
    try:
        yield server
    finally:
        process.terminate()
        process.wait()
        reader.join()
        assert process.stderr
        process.stderr.close()


def fails_to_start(tinyserve: Path, *options: str, env: Mapping[str, str] = {}) -> list[str]:
    """The log of a start that must fail."""
    with serving(tinyserve, *options, env=env) as server:
        assert server.url() is None, server.lines
        assert server.process.returncode == 1
        return server.lines


def is_healthy(tinyserve: Path, *options: str, env: Mapping[str, str] = {}) -> bool:
    """Whether it gets ready and says so."""
    with serving(tinyserve, *options, env=env) as server:
        url = server.url()
        return url is not None and urllib.request.urlopen(f"{url}/health").status == 200
