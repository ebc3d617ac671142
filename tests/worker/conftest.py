"""Pipelines on real sandboxes."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.redis_server import Broker
from tests.worker.bench import Bench, make_repository
from tests.worker.node import Node
from tests.worker.registry import pushed, registry
from worker.assembly import make_pipeline
from worker.contract import Sandbox
from worker.pipeline import Pipeline
from worker.run.shared import shared_folder
from worker.settings import Settings

METADATA = "169.254.169.254"


def pipeline(folder: Path, **settings: object) -> Pipeline:
    values = {"work_dir": folder / "work", "allow_file_repos": True, "node": f"test-{os.getpid()}", **settings}
    values.setdefault("gpu_dir", folder / "gpus")
    return make_pipeline(Settings(**values))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    path = tmp_path_factory.mktemp("origin") / "tinypkg"
    return path, make_repository(path)


@pytest.fixture(params=["process", "docker"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    """One for each sandbox."""
    if request.param == "docker":
        sandbox = Sandbox(kind="docker", image=request.getfixturevalue("docker_image"))
    else:
        needs("bwrap")
        sandbox = Sandbox(kind="process")
    made = pipeline(tmp_path)
    yield Bench(made, *repository, sandbox)
    for each in made.site.sandboxes.values():
        each.close()


@pytest.fixture
def process_bench(tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    needs("bwrap")
    made = pipeline(tmp_path)
    yield Bench(made, *repository, Sandbox(kind="process"))
    for each in made.site.sandboxes.values():
        each.close()


@pytest.fixture(scope="session")
def pushed_image(docker_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """In a registry on this machine, so that it has a digest, and can be pulled."""
    with registry(tmp_path_factory.mktemp("registry")) as host, pushed(host, docker_image) as name:
        yield name


@pytest.fixture
def docker_bench(tmp_path: Path, docker_image: str, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    return Bench(
        pipeline(tmp_path, node=f"node-{tmp_path.name}"), *repository, Sandbox(kind="docker", image=docker_image)
    )


@pytest.fixture
def node(broker: Broker, tmp_path: Path) -> Iterator[Node]:
    needs("bwrap")
    found = Node(broker, tmp_path / "node", tmp_path / "worker.log")
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.wait()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own."""
    needs("root")  # mounting does
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def metadata() -> Iterator[int]:
    """The port of what answers here as a cloud's metadata service does on its nodes.

    The address is the machine's, so one test at a time has it, and one that was killed leaves it to the next.
    """
    needs("root")
    with (shared_folder("tests") / "metadata").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["ip", "address", "replace", f"{METADATA}/32", "dev", "lo"], check=True)
        try:
            with socket.create_server((METADATA, 0)) as server:
                yield server.getsockname()[1]
        finally:
            subprocess.run(["ip", "address", "del", f"{METADATA}/32", "dev", "lo"], check=True)
