from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.generate import Example, Options, generate
from tests.end_to_end.service import Service


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The example as it is by default: 249 commits, the 135th is the first bad one."""
    return generate(tmp_path_factory.mktemp("example") / "tinyserve", Options())


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all tests that leave it as it was."""
    running = Service(tmp_path_factory.mktemp("service") / "home").start()
    yield running
    running.interrupt()
    assert running.processes() == []


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """One that the test may break; not started yet."""
    made = Service(tmp_path / "home")
    yield made
    for process in made.processes():
        process.kill()
