"""What only the docker sandbox has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docker.client import from_env

from tests.waiting import eventually
from tests.worker.bench import Background, Bench
from tests.worker.conftest import pipeline
from worker.contract import Sandbox
from worker.run.docker import networks
from worker.run.job import identity
from worker.run.stop import CANCELLED

#: An image's own copy of the package that the tests build, in the same version.
OLD = """
set -e
folder=$(python3 -c 'import site; print(site.getsitepackages()[0])')
mkdir -p $folder/tinypkg-1.0.dist-info
printf 'Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n' > $folder/tinypkg-1.0.dist-info/METADATA
printf 'tinypkg.py,,\ntinypkg-1.0.dist-info/METADATA,,\ntinypkg-1.0.dist-info/RECORD,,\n' \
    > $folder/tinypkg-1.0.dist-info/RECORD
echo pip > $folder/tinypkg-1.0.dist-info/INSTALLER
echo 'WHERE = "old"' > $folder/tinypkg.py
cd /; python3 -c 'import tinypkg; assert tinypkg.WHERE == "old"'
"""


@pytest.fixture(params=["uv", "pip"])
def old_image(request: pytest.FixtureRequest, docker_image: str) -> Iterator[str]:
    """Has another tinypkg 1.0 among its own packages, and this installer."""
    name, container = f"firstbad-test-old-{request.param}:{os.getpid()}", f"firstbad-test-old-{os.getpid()}"
    # Where an image has no uv it gets ours; pip is left to those in which uv does not run.
    no_uv = "printf '#!/nowhere\\n' > /usr/local/bin/uv; chmod +x /usr/local/bin/uv"
    script = OLD + (no_uv if request.param == "pip" else "")
    subprocess.run(["docker", "run", "--name", container, docker_image, "sh", "-c", script], check=True)
    subprocess.run(["docker", "commit", container, name], check=True, capture_output=True)
    yield name
    subprocess.run(["docker", "rm", container], capture_output=True)
    subprocess.run(["docker", "rmi", "--force", name], capture_output=True)


@pytest.fixture
def docker_bench(tmp_path: Path, docker_image: str, repository: tuple[Path, tuple[str, ...]]) -> Bench:
    return Bench(
        pipeline(tmp_path, node=f"node-{tmp_path.name}"), *repository, Sandbox(kind="docker", image=docker_image)
    )


def containers(bench: Bench) -> list[str]:
    command = ["docker", "ps", "--all", "--quiet", "--filter", f"label=firstbad.node={bench.pipeline.site.node}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def inspect(container: str, template: str) -> str:
    command = ["docker", "inspect", "--format", template, container]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_image_without_python_is_a_fault_that_says_so(docker_bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    subprocess.run(f"tar -C {tmp_path}/empty -c . | docker import - firstbad-test-empty:latest", shell=True, check=True)
    docker_bench.sandbox = Sandbox(kind="docker", image="firstbad-test-empty:latest")
    fault = docker_bench.probe("true").fault
    subprocess.run(["docker", "rmi", "--force", "firstbad-test-empty:latest"], capture_output=True)
    assert fault is not None and (fault.kind, "python3" in fault.message) == ("image", True), fault
    assert containers(docker_bench) == []


def test_a_wheel_counts_before_the_same_version_in_the_image(docker_bench: Bench, old_image: str) -> None:
    wheel = docker_bench.build().wheel
    assert wheel is not None
    docker_bench.sandbox = Sandbox(kind="docker", image=old_image)
    script = "python3 -c 'import tinypkg; print(tinypkg.WHERE)'"
    outcome = docker_bench.outcome(script, wheel=wheel.path, wheel_sha256=wheel.sha256)
    assert "/work/venv/" in outcome.log.last_lines[-1]


@pytest.mark.parametrize("old_image", ["pip"], indirect=True)
def test_an_installer_that_installs_elsewhere_is_a_fault(docker_bench: Bench, old_image: str) -> None:
    wheel = docker_bench.build().wheel
    assert wheel is not None
    docker_bench.sandbox = Sandbox(kind="docker", image=old_image)
    env = {"PIP_TARGET": "/tmp/elsewhere"}
    result = docker_bench.probe("true", wheel=wheel.path, wheel_sha256=wheel.sha256, env=env)
    assert result.fault is not None and result.fault.kind == "install"


def test_no_image_at_all_is_a_fault(docker_bench: Bench) -> None:
    docker_bench.sandbox = Sandbox(kind="docker")
    fault = docker_bench.probe("true").fault
    assert fault is not None and fault.kind == "order"


def test_a_container_is_labelled_and_has_nothing_it_does_not_need(docker_bench: Bench) -> None:
    probe = Background(docker_bench, docker_bench.order("sleep 600"))
    eventually(lambda: containers(docker_bench))
    (container,) = containers(docker_bench)
    labels = inspect(container, "{{json .Config.Labels}}")
    facts = inspect(container, "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}}")
    probe.stop.press(CANCELLED)
    assert probe.finished() is None
    assert f'"firstbad.probe":"{probe.order.probe}"' in labels and '"firstbad.attempt":"1"' in labels
    assert f'"firstbad.worker":"{identity(docker_bench.pipeline.site.work_dir)}"' in labels
    assert '"firstbad.bisection":"b1"' in labels and '"firstbad.kind":"probe"' in labels
    assert facts == "true [ALL] [no-new-privileges:true]"
    assert containers(docker_bench) == []


def test_a_container_that_someone_removes_is_a_fault(docker_bench: Bench) -> None:
    probe = Background(docker_bench, docker_bench.order("sleep 600"))
    eventually(lambda: containers(docker_bench))
    subprocess.run(["docker", "rm", "--force", *containers(docker_bench)], check=True, capture_output=True)
    result = probe.finished()
    assert result is not None and result.fault is not None and result.fault.kind in ("sandbox", "engine")
    assert docker_bench.left() == []


def test_only_the_containers_that_this_worker_left_are_removed(docker_bench: Bench, docker_image: str) -> None:
    node = f"firstbad.node={docker_bench.pipeline.site.node}"
    label = f"firstbad.worker={identity(docker_bench.pipeline.site.work_dir)}"
    subprocess.run(
        ["docker", "run", "--detach", "--label", label, "--label", node, docker_image, "sleep", "600"], check=True
    )
    subprocess.run(["docker", "create", "--label", label, "--label", node, docker_image, "true"], check=True)
    other = subprocess.run(
        ["docker", "create", "--label", "firstbad.worker=other", "--label", node, docker_image, "true"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert docker_bench.pipeline.site.sandboxes["docker"].remove_orphans() == 2
    left = containers(docker_bench)
    subprocess.run(["docker", "rm", other], check=True, capture_output=True)
    # Another worker's, though its node has the same name.
    assert left == [other[:12]]


def test_a_bridge_reaches_out_and_has_its_own_ports(docker_bench: Bench) -> None:
    outcome = docker_bench.outcome("cat /proc/net/dev; echo $FIRSTBAD_COMMIT", network="bridge")
    assert any("eth0" in line for line in docker_bench.text(outcome))


def test_of_two_networks_that_were_made_at_once_all_take_the_same(docker_image: str) -> None:
    """As two first builds of a node do, since the engine lets both be made."""
    client, name = from_env(), f"firstbad-test-twice-{os.getpid()}"
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: networks.made(client, name), range(8)))
        twice = client.networks.create(name, driver="bridge", check_duplicate=False)
        last = networks.made(client, name)
        assert {network.id for network in found} == {last.id}
        assert last.id != twice.id
        client.containers.run(docker_image, ["true"], network=name, remove=True)
    finally:
        for network in client.networks.list(names=[f"^{name}$"]):
            network.remove()


def test_the_images_own_variables_are_kept(docker_bench: Bench) -> None:
    outcome = docker_bench.outcome("echo $PATH; whoami || id -u")
    assert docker_bench.text(outcome)[0] == "/usr/local/bin:/usr/bin:/bin:/firstbad/bin"


def test_the_image_is_named_by_its_digest(docker_bench: Bench, docker_image: str) -> None:
    environment = docker_bench.outcome("true").environment
    assert environment["image"] == docker_image
    assert environment["image_id"] == inspect(docker_image, "{{.Id}}")
