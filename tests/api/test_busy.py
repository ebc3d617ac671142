"""What a client hears while the database is locked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from service import wiring
from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.application.flow import Flow
from service.web import create_app
from tests.fakes.server import serving

REQUEST = {"repo": "https://example.org/x.git", "good": "a", "bad": "b", "script": "true", "project": "source"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "/api/v1/bisections", REQUEST), ("GET", "/readyz", None)],
)
def test_a_locked_database_is_told_as_busy_with_when_to_come_back(
    tmp_path: Path, method: str, path: str, body: dict | None
) -> None:
    settings = wiring.settings(home=tmp_path, redis_url="redis://127.0.0.1:1/0", database_url=None)
    migrate.upgrade(settings.database)
    ports = wiring.wire(settings).flow.ports
    flow = Flow(replace(ports, bisections=Database(create_engine(settings.database, busy_timeout_s=0.1))))
    with (
        closing(sqlite3.connect(tmp_path / "firstbad.sqlite", isolation_level=None)) as holder,
        serving(create_app(flow)) as url,
    ):
        holder.execute("BEGIN IMMEDIATE")
        answer = httpx.request(method, url + path, json=body, trust_env=False, timeout=30)
    assert answer.status_code == 503
    if path != "/readyz":
        assert answer.json()["type"] == "/problems/database-busy"
        assert int(answer.headers["Retry-After"]) > 0
