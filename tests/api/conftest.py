from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from service.web import create_app
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[FakeFlow, httpx.Client]]:
    """One real server for all tests: starting one takes longer than most of them."""
    flow = FakeFlow()
    with serving(create_app(flow)) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        yield flow, client


@pytest.fixture
def flow(served: tuple[FakeFlow, httpx.Client]) -> FakeFlow:
    served[0].reset()
    return served[0]


@pytest.fixture
def http(served: tuple[FakeFlow, httpx.Client], flow: FakeFlow) -> httpx.Client:
    return served[1]
