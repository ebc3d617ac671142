"""A log is seen while it is written, through all parts: worker, Redis, control, API and client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firstbad import Client
from tests.end_to_end.service import Service, until
from tests.repositories import NewCommit, build_repository

SCRIPT = """
echo first
while [ ! -e go ]; do sleep 0.05; done
echo second
false
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("follow") / "repository"
    build_repository(path, [NewCommit(f"change {number}") for number in range(3)], branches={"main": 2})
    return path


def submitted(service: Service, repository: Path) -> str:
    """The probe of the bad end, which comes first."""
    request = {"repo": str(repository), "good": "main~2", "bad": "main", "script": SCRIPT, "project": "source"}
    return f"{service.submit(request)}.1"


def known(client: Client, probe: str) -> bool:
    return any(each.id == probe for each in client.probes(probe.rpartition(".")[0]))


def read_until(pieces: Iterator[bytes], text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += next(pieces)
    return seen


def go(service: Service, probe: str, attempt: int = 1) -> None:
    (service.home / "work" / "jobs" / f"{probe}.{attempt}" / "work" / "tree" / "go").touch()


def test_a_line_is_seen_before_the_run_ends(service: Service, repository: Path) -> None:
    probe = submitted(service, repository)
    with service.client() as client:
        until(lambda: known(client, probe), "the probe is planned")
        pieces = client.log(probe, follow=True)
        assert b"second" not in read_until(pieces, b" first\n")
        assert client.probe(probe).outcome is None
        go(service, probe)
        seen = b"".join(pieces)
        assert seen.count(b" second\n") == 1
        assert client.probe(probe).outcome is not None
        stored = b"".join(client.log(probe))
        assert [line[25:] for line in stored.splitlines()][-1] == b"second"
        assert [path.name for path in service.home.rglob(f"{probe}.1.log*")] == [f"{probe}.1.log.zst"]
        client.cancel(probe.rpartition(".")[0])


def test_a_worker_that_is_killed_is_told_and_its_next_attempt_is_followed(
    own_service: Service, repository: Path
) -> None:
    service = own_service.start()
    probe = submitted(service, repository)
    with service.client() as client:
        until(lambda: known(client, probe), "the probe is planned")
        pieces = client.log(probe, follow=True)
        read_until(pieces, b" first\n")
        service.part("worker").kill()
        seen = read_until(pieces, b" first\n")
        assert b"[firstbad: attempt 2]\n" in seen
        go(service, probe, 2)
        assert b" second\n" in b"".join(pieces)
    service.interrupt()
