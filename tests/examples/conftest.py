"""Generated repositories and what is built of them, shared by all tests of the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.generate import Example, Options, generate
from tests.examples.running import Builds

#: Everything that a commit can be, in as few commits as hold it.
ZOO = Options(
    seed=7,
    commits=14,
    first_bad=10,
    native_trees=4,
    does_not_build=((2, 2),),
    does_not_install=((4, 4),),
    fails_otherwise=((6, 6),),
    hangs=((8, 8),),
    slower=(11, 10.0),
    less_accurate=12,
    fix=16,
)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The default one."""
    return generate(tmp_path_factory.mktemp("example") / "tinyserve")


@pytest.fixture(scope="session")
def builds(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(tmp_path_factory.mktemp("builds"), example.path)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return generate(tmp_path_factory.mktemp("zoo") / "tinyserve", ZOO)


@pytest.fixture(scope="session")
def zoo_builds(zoo: Example, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(tmp_path_factory.mktemp("zoo-builds"), zoo.path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "repository"
