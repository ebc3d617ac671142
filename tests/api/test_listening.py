"""Where the service listens, and what that allows."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest
from pydantic import ValidationError

from service.listener import Taken, listening, url
from service.settings import Settings, complaints


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_service_that_only_its_machine_reaches_allows_both_sandboxes(host: str) -> None:
    found = Settings(host=host)  # type: ignore[arg-type]
    assert (found.allowed_sandboxes, found.usual_sandbox) == ({"process", "docker"}, "process")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5"])
def test_a_service_that_others_reach_runs_their_code_in_containers_alone(host: str) -> None:
    found = Settings(host=host)  # type: ignore[arg-type]
    assert (found.allowed_sandboxes, found.usual_sandbox) == ({"docker"}, "docker")


def test_what_the_operator_names_counts_wherever_the_service_listens() -> None:
    found = Settings(host="0.0.0.0", sandboxes="process,docker")  # type: ignore[arg-type]
    assert (found.allowed_sandboxes, found.usual_sandbox) == ({"process", "docker"}, "process")
    assert Settings(host="127.0.0.1", sandboxes="docker").usual_sandbox == "docker"  # type: ignore[arg-type]
    assert Settings(default_sandbox="docker").usual_sandbox == "docker"


def test_a_host_that_is_no_address_is_told() -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(host="example.org")  # type: ignore[arg-type]
    (said,) = complaints(raised.value)
    assert said.startswith("FIRSTBAD_HOST: 'example.org'") and said.endswith("write it like 127.0.0.1")


@pytest.mark.parametrize("url", ["redis://:pa/ssw0rd@host/0", "redis://:1/ssw0rd@host", "ssw0rd@host"])
def test_an_address_of_redis_that_cannot_be_read_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(redis_url=url)
    (said,) = complaints(raised.value)
    assert said.startswith("FIRSTBAD_REDIS_URL: ") and "ssw0rd" not in said


@pytest.mark.parametrize(("host", "near"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")])
def test_it_is_reached_from_its_own_machine_by_a_url(host: str, near: str) -> None:
    with listening(ip_address(host), 0) as listener:
        port = listener.getsockname()[1]
        assert url(listener) == f"http://{near}:{port}"
        socket.create_connection((near.strip("[]"), port)).close()


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    with listening(ip_address("127.0.0.1"), 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Taken, match=f"port {port} of 127.0.0.1: .* in use; name another with --port"):
            listening(ip_address("127.0.0.1"), port).__enter__()
