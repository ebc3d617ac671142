"""`firstbad up` where others can reach it: never open, and ready all the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import httpx

from firstbad import Client
from service.domain.access import Scope
from tests.end_to_end.service import FIRSTBAD, Service


def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FIRSTBAD, *words], env={**os.environ, **settings}, capture_output=True, text=True, timeout=120
    )


def test_on_an_address_of_others_it_starts_with_a_token_alone_and_answers_nobody_else(tmp_path: Path) -> None:
    service = Service(tmp_path / "home", host="0.0.0.0")
    for auth, said in ((None, "firstbad token create NAME --scope admin --database --home"), ("open", "FIRSTBAD_AUTH")):
        settings = {"FIRSTBAD_HOST": "0.0.0.0", **({"FIRSTBAD_AUTH": auth} if auth else {})}
        refused = run("up", "--home", str(service.home), "--port", str(service.port), **settings)
        assert refused.returncode == 3
        assert said in refused.stderr.replace("\n", " ")
    made = run("token", "create", "ann", "--scope", "admin", "--database", "--home", str(service.home), "--json")
    assert made.returncode == 0, made.stderr
    text = json.loads(made.stdout)["token"]
    service.start()
    try:
        for path, status in (("/healthz", 200), ("/readyz", 401), ("/metrics", 401), ("/api/v1/nodes", 401)):
            assert httpx.get(f"{service.url}{path}", trust_env=False).status_code == status
        with Client(service.url, token=text) as client:
            assert client.tokens().items[0].scope is Scope.ADMIN
            assert client.nodes()
        told = run("token", "list", "--url", service.url, FIRSTBAD_TOKEN=text)
        assert "ann" in told.stdout and text not in told.stdout
        kept = [file for file in service.home.rglob("*") if file.is_file() and "mirrors" not in file.parts]
        assert not [file for file in kept if text.encode() in file.read_bytes()], "it stands in no file of the service"
    finally:
        assert service.interrupt() == 0
