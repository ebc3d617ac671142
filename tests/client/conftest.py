from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.web import create_app
from tests.client.scripted import Script, scripted
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving


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
def url(served: tuple[FakeFlow, str], flow: FakeFlow) -> str:
    return served[1]


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script
