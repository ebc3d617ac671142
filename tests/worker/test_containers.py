"""What an order asks of a container: cards, limits, networks, models."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import Background, Bench
from tests.worker.conftest import METADATA, pipeline
from tests.worker.registry import run
from tests.worker.test_docker import containers, inspect
from worker import contract
from worker.contract import Sandbox
from worker.run import job as jobs
from worker.run.docker import DockerSandbox
from worker.run.docker.networks import NOWHERE
from worker.run.job import Errand
from worker.run.stop import CANCELLED, Stop


@pytest.fixture
def docker_bench(tmp_path: Path, docker_image: str, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    made = pipeline(tmp_path, node=f"node-{tmp_path.name}", gpus="4xFake-80GB")
    return Bench(made, *repository, Sandbox(kind="docker", image=docker_image))


@pytest.fixture
def sandbox(docker_bench: Bench) -> DockerSandbox:
    found = docker_bench.pipeline.site.sandboxes["docker"]
    assert isinstance(found, DockerSandbox)
    return found


@pytest.fixture
def network(docker_image: str) -> Iterator[str]:
    """One that the operator made."""
    name = f"firstbad-test-{os.getpid()}"
    run("docker", "network", "create", name)
    yield name
    run("docker", "network", "rm", name)


def of_a_run(bench: Bench, template: str, **asked: object) -> str:
    """Of its container, while it runs."""
    probe = Background(bench, bench.order("sleep 600", **asked))
    eventually(lambda: containers(bench) or probe.result)
    assert probe.result is None, probe.result
    told = inspect(containers(bench)[0], template)
    probe.stop.press(CANCELLED)
    assert probe.finished() is None
    return told


def test_limits_are_those_of_the_order(docker_bench: Bench) -> None:
    limits = {"shm_bytes": 2**27, "cpus": 1.5, "memory_bytes": 2**28, "pids": 100}
    host = ".HostConfig."
    template = f"{{{{{host}ShmSize}}}} {{{{{host}NanoCpus}}}} {{{{{host}Memory}}}} {{{{{host}MemorySwap}}}} "
    told = of_a_run(docker_bench, template + f"{{{{{host}PidsLimit}}}}", limits=limits)
    assert told.split() == [str(2**27), "1500000000", str(2**28), str(2**28), "100"]


def test_more_processors_than_there_are_are_all_there_are(docker_bench: Bench) -> None:
    assert docker_bench.outcome("true", limits={"cpus": 4096.0}).exit_status == 0


def test_declared_cards_are_told_and_asked_of_no_engine(docker_bench: Bench) -> None:
    gpus = contract.Gpus(count=2, model="fake-80gb")
    script = "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"
    assert docker_bench.text(docker_bench.outcome(script, gpus=gpus)) == ["0,1 0,1"]


def test_a_run_without_a_lease_gets_no_card_whatever_its_image_asks_for(docker_bench: Bench) -> None:
    # Where the vendor's runtime is the engine's own, this variable of the container is what it goes by.
    told = of_a_run(docker_bench, "{{.Config.Env}} {{.HostConfig.DeviceRequests}}")
    assert "NVIDIA_VISIBLE_DEVICES=void" in told and told.endswith("[]") or told.endswith("<no value>"), told


def test_a_card_that_the_engine_cannot_give_is_a_fault_that_says_what_to_install(
    docker_bench: Bench, sandbox: DockerSandbox
) -> None:
    needs("no-cards")  # else this engine may well have such a one
    gpu = contract.Gpu(
        index=0, model="NVIDIA H100", memory_bytes=2**36, uuid="GPU-8d6a32ad-0000-0000-0000-000000000000"
    )
    order = {"script": "true", "offline": True, "timeout_s": 10.0, "log_cap_bytes": 4096}
    job = jobs.create(docker_bench.pipeline.site.work_dir / "jobs", "card", sandbox.uid)
    labels = {"node": docker_bench.pipeline.site.node}
    with pytest.raises(Exception, match="no such device") as raised:
        sandbox.run(job, Errand(order, 10.0, image=docker_bench.sandbox.image, gpus=(gpu,), labels=labels), Stop())
    assert raised.value.kind == "device" and "nvidia-container-toolkit" in raised.value.advice
    assert containers(docker_bench) == []


def test_a_network_of_the_operators_can_be_named(docker_bench: Bench, network: str) -> None:
    told = of_a_run(docker_bench, "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}", network=network)
    assert told.split() == [network]


@pytest.mark.parametrize("wrong", ["firstbad-test-none", "host", "default"])
def test_a_network_that_there_is_not_is_a_fault(docker_bench: Bench, wrong: str) -> None:
    fault = docker_bench.probe("true", network=wrong).fault
    assert fault is not None and fault.kind == "network" and repr(wrong) in fault.message
    assert f"docker network create {wrong}" in fault.advice or wrong != "firstbad-test-none"
    assert containers(docker_bench) == [] and docker_bench.left() == []


def test_networks_that_there_are_not_are_not_made(docker_bench: Bench) -> None:
    docker_bench.probe("true", network="firstbad-test-none")
    assert run("docker", "network", "ls", "--quiet", "--filter", "name=firstbad-test-none") == ""


def test_the_clouds_metadata_service_is_not_reached(docker_bench: Bench, metadata: int, network: str) -> None:
    script = f"timeout 2 bash -c 'exec 3<>/dev/tcp/{METADATA}/{metadata}' && echo reached || echo no"
    for ours in ("none", "bridge"):
        outcome = docker_bench.outcome(script, network=ours)
        assert (docker_bench.text(outcome)[-1], outcome.environment["not_isolated"]) == ("no", "none")
    # What the operator made is as he made it, and that is said.
    outcome = docker_bench.outcome(script, network=network)
    assert (docker_bench.text(outcome)[-1], outcome.environment["not_isolated"]) == ("reached", "metadata")


def test_the_node_keeps_its_own_way_to_the_metadata_service(docker_bench: Bench) -> None:
    docker_bench.outcome("true", network="bridge")
    bridge = f"br-{run('docker', 'network', 'inspect', '--format', '{{.Id}}', NOWHERE)[:12]}"
    assert bridge not in Path("/proc/net/route").read_text()


def test_what_is_on_the_bridge_reaches_out_all_the_same(docker_bench: Bench) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        gateway = run("docker", "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", "firstbad")
        script = f"timeout 5 bash -c 'exec 3<>/dev/tcp/{gateway}/{server.getsockname()[1]}'"
        assert docker_bench.outcome(script, network="bridge").exit_status == 0
