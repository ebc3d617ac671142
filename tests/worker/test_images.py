"""Images that are not on the node: pulled, or a fault that says whether another try can help."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.worker.bench import Background, Bench
from tests.worker.registry import free_port, registry, run
from tests.worker.test_docker import containers
from worker.contract import Fault, Sandbox
from worker.run.docker.images import fault
from worker.run.docker.sandbox import CALL_S
from worker.run.stop import CANCELLED


@pytest.fixture
def docker_bench(process_bench: Bench) -> Bench:
    process_bench.sandbox = Sandbox(kind="docker", image="none")
    return process_bench


def faulted(bench: Bench, image: str) -> Fault:
    bench.sandbox = Sandbox(kind="docker", image=image)
    told = bench.probe("true").fault
    assert told is not None
    assert containers(bench) == [] and bench.left() == []
    return told


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """What stands for a registry that has had enough, or is ill: a real one cannot be asked to be."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("by", ["name", "digest"])
def test_an_image_that_the_node_lacks_is_pulled(docker_bench: Bench, pushed_image: str, by: str) -> None:
    run("docker", "pull", "--quiet", pushed_image)
    digest = run("docker", "inspect", "--format", "{{index .RepoDigests 0}}", pushed_image)
    wanted = pushed_image if by == "name" else digest
    # By its id, and so under all its names.
    run("docker", "rmi", "--force", run("docker", "inspect", "--format", "{{.Id}}", pushed_image))
    docker_bench.sandbox = Sandbox(kind="docker", image=wanted)
    environment = docker_bench.outcome("true").environment
    assert (environment["image"], environment["image_digest"]) == (wanted, digest)


def test_a_name_that_no_registry_has_is_a_fault_of_which_no_retry_helps(docker_bench: Bench, pushed_image: str) -> None:
    for missing in (f"{pushed_image}.2", pushed_image.replace("image:1", "none:1")):
        told = faulted(docker_bench, missing)
        assert told.kind == "image" and missing in told.message and f"docker pull {missing}" in told.advice


def test_a_registry_that_wants_a_password_is_told_from_one_that_is_away(docker_bench: Bench, tmp_path: Path) -> None:
    with registry(tmp_path, closed=True) as host:
        told = faulted(docker_bench, f"{host}/team/image:1")
    assert told.kind == "image" and "docker login" in told.advice
    assert faulted(docker_bench, f"{host}/team/image:1").kind == "registry"


def test_a_pull_of_which_nobody_says_anything_can_be_cancelled(docker_bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60.0)
        docker_bench.sandbox = Sandbox(kind="docker", image=f"127.0.0.1:{silent.getsockname()[1]}/team/image:1")
        probe = Background(docker_bench, docker_bench.order("true"))
        with silent.accept()[0]:
            probe.stop.press(CANCELLED)
            # Less than the engine's client would wait for it.
            assert probe.finished(CALL_S / 2) is None
    assert docker_bench.left() == []


def test_what_is_no_name_of_an_image_is_a_fault(docker_bench: Bench) -> None:
    assert faulted(docker_bench, "No Image").kind == "image"


def test_a_registry_that_limits_pulls_is_told(docker_bench: Bench) -> None:
    body = '{"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit."}]}'
    with answering(429, body) as host:
        told = faulted(docker_bench, f"{host}/team/image:1")
    assert told.kind == "image-limited" and "docker login" in told.advice


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_registry_that_fails_is_told(docker_bench: Bench, status: int) -> None:
    with answering(status, "") as host:
        assert faulted(docker_bench, f"{host}/team/image:1").kind == "registry"


def test_a_registry_that_cannot_be_reached_is_told(docker_bench: Bench) -> None:
    told = faulted(docker_bench, f"127.0.0.1:{free_port()}/team/image:1")
    assert told.kind == "registry" and "refused" in told.message
    assert faulted(docker_bench, "registry.invalid/team/image:1").kind == "registry"


def test_an_id_is_nothing_that_could_be_pulled(docker_bench: Bench) -> None:
    told = faulted(docker_bench, f"sha256:{'0' * 64}")
    assert told.kind == "image" and "docker load" in told.advice


#: As the engine and registries word it, of images that these tests cannot have.
SAID = {
    "toomanyrequests: You have reached your unauthenticated pull rate limit.": "image-limited",
    "error pulling image configuration: received unexpected HTTP status: 429 Too Many Requests": "image-limited",
    "pull access denied for x, repository does not exist or may require 'docker login': denied: requested": "image",
    "no matching manifest for linux/arm64/v8 in the manifest list entries": "image",
    "unauthorized: authentication required": "image",
    "manifest for x:2 not found: manifest unknown: manifest unknown": "image",
    "Get https://registry-1.docker.io/v2/: net/http: TLS handshake timeout": "registry",
    "Get https://x/v2/: dial tcp: lookup x on 10.0.0.2:53: no such host": "registry",
    "received unexpected HTTP status: 503 Service Unavailable": "registry",
    "unexpected EOF": "registry",
    "failed to register layer: write /usr/lib/x: no space left on device": "disk-full",
}


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_of_a_pull_tells_whose_fault_it_is(said: str) -> None:
    assert fault("x:2", said).kind == SAID[said]
