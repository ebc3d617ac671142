"""Pipelines on real sandboxes, and a throwaway Redis that can go away and come back."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.conftest import needs
from tests.worker.bench import Bench, make_repository
from worker.contract import Sandbox
from worker.pipeline import Pipeline
from worker.settings import Settings
from worker.tasks import make_pipeline

IMAGE = "firstbad-test:latest"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def image() -> str:
    """The image of the docker sandbox's tests, made when this machine lacks it."""
    needs("docker")
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode:
        subprocess.run([ROOT / "docker" / "base.sh", IMAGE, "bookworm"], check=True)
    return IMAGE


def pipeline(folder: Path, **settings: object) -> Pipeline:
    values = {"work_dir": folder / "work", "allow_file_repos": True, "node": f"test-{os.getpid()}", **settings}
    return make_pipeline(Settings(**values))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    path = tmp_path_factory.mktemp("origin") / "tinypkg"
    return path, make_repository(path)


@pytest.fixture(params=["process", "docker"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    """One for each sandbox."""
    if request.param == "docker":
        sandbox = Sandbox(kind="docker", image=request.getfixturevalue("image"))
    else:
        needs("bwrap")
        sandbox = Sandbox(kind="process")
    return Bench(pipeline(tmp_path), *repository, sandbox)


@pytest.fixture
def process_bench(tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    needs("bwrap")
    return Bench(pipeline(tmp_path), *repository, Sandbox(kind="process"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


class Broker:
    """A Redis of its own, on a port that stays the same, without a memory of its past."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.client().ping())
        except redis.ConnectionError:
            return False

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=30.0, decode_responses=True)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def eventually(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits until it is, and fails when it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


@pytest.fixture
def broker() -> Iterator[Broker]:
    needs("redis")
    found = Broker()
    yield found
    found.stop()
