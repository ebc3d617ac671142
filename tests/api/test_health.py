"""`/healthz` and `/readyz` of a real service whose database or broker is away, or hangs, which is worse."""

from __future__ import annotations

import signal
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from service import wiring
from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.telemetry.pulse import Pulse
from service.application.flow import Flow
from service.domain.bisection import Node
from service.web import create_app
from tests.fakes.server import serving
from tests.redis_server import Broker

#: Of a check, in these tests; a request gets far longer.
WITHIN_S = 1.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    migrate.upgrade(f"sqlite:///{tmp_path}/firstbad.sqlite")
    return tmp_path


@contextmanager
def ready(home: Path, redis_url: str, database_url: str | None = None) -> Iterator[httpx.Client]:
    settings = wiring.settings(home=home, redis_url=redis_url, database_url=database_url)
    flow = wiring.wire(settings).flow
    if database_url is None:
        begin(flow)
    app = create_app(flow, check_within_s=WITHIN_S)
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        yield client


def begin(flow: Flow) -> None:
    """As a control worker and a node do."""
    flow.beat(Pulse("control-1", 8, 5.0, flow.ports.clock.now).beat())
    flow.node(Node("n1", 2, flow.ports.clock.now(), "alive"), booted=True)


def parts(client: httpx.Client) -> tuple[int, dict[str, str]]:
    answer = client.get("/readyz")
    assert client.get("/healthz").json()["status"] == "ok"
    return answer.status_code, answer.json()["parts"]


def test_all_is_well(home: Path, broker: Broker) -> None:
    with ready(home, broker.url) as client:
        assert parts(client) == (200, {"database": "ok", "queue": "ok", "control": "ok", "workers": "ok"})


def test_a_broker_that_hangs_is_told_in_time_and_again_and_when_it_goes_on(home: Path, broker: Broker) -> None:
    assert broker.process is not None
    with ready(home, broker.url) as client:
        broker.process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            status, said = parts(client)
            assert (status, said["queue"]) == (503, "has not answered within 1 s")
            assert said["database"] == said["control"] == "ok"
        broker.process.send_signal(signal.SIGCONT)
        said = {}
        for _ in range(30):
            status, said = parts(client)
            if status == 200:
                break
        assert said["queue"] == "ok"


def test_a_broker_that_refuses_is_told_with_its_words(home: Path, broker: Broker) -> None:
    with ready(home, broker.url) as client:
        broker.stop()
        status, said = parts(client)
        assert status == 503 and said["database"] == "ok" and "does not answer" in said["queue"]


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
def test_a_server_that_takes_connections_and_never_answers_is_told_in_time(
    home: Path, broker: Broker, scheme: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://user:secret-word@127.0.0.1:{silent.getsockname()[1]}/0"
        redis_url, database_url = (url, None) if scheme == "redis" else (broker.url, url)
        with ready(home, redis_url, database_url) as client:
            down = "queue" if scheme == "redis" else "database"
            for _ in range(3):
                status, said = parts(client)
                assert (status, said[down]) == (503, "has not answered within 1 s")
                assert "secret-word" not in str(said)


def test_requests_that_hang_on_the_database_do_not_keep_the_health_from_being_told(home: Path, broker: Broker) -> None:
    """More of them than there are threads for requests."""
    with (
        ready(home, broker.url) as client,
        closing(sqlite3.connect(home / "firstbad.sqlite", isolation_level=None)) as holder,
        httpx.Client(base_url=client.base_url, trust_env=False, timeout=60) as others,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(50) as pool:
            asked = [pool.submit(others.get, "/api/v1/bisections") for _ in range(50)]
            status, said = parts(client)
            assert status == 503 and said["queue"] == "ok" and said["database"] != "ok"
            holder.execute("ROLLBACK")
            assert {answer.result().status_code for answer in asked} <= {200, 503}


@pytest.mark.parametrize(("version", "said"), [("0005", "firstbad up"), ("9999", "newer")])
def test_a_database_of_another_version_is_not_ready(home: Path, broker: Broker, version: str, said: str) -> None:
    with ready(home, broker.url) as client:
        with closing(sqlite3.connect(home / "firstbad.sqlite")) as database:
            database.execute("UPDATE alembic_version SET version_num = ?", [version])
            database.commit()
        status, parts_ = parts(client)
        assert status == 503
        assert version in parts_["database"] and said in parts_["database"]


def test_an_empty_database_is_not_ready(home: Path, broker: Broker, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.sqlite"
    create_engine(url).dispose()
    with ready(home, broker.url, url) as client:
        status, said = parts(client)
    assert status == 503 and "empty" in said["database"]
