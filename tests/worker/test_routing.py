"""Which orders come to a node: its own, those for its GPUs, and none while it is taken out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.redis_server import Broker
from tests.waiting import eventually
from tests.worker.bench import Background, Bench
from tests.worker.conftest import pipeline
from tests.worker.node import Node
from worker.contract import Gpus, Queue, Sandbox, Task, cancel_key, gpu_queue, lease_key, node_queue, out_key
from worker.queues import of_builds, of_probes
from worker.run.stop import CANCELLED, Stop
from worker.settings import Settings
from worker.tasks import Worker


@pytest.fixture
def gpu_bench(tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    """Of a node with two cards that are none."""
    needs("bwrap")
    made = pipeline(tmp_path, gpus="2xFake-80GB", gpu_dir=tmp_path)
    yield Bench(made, *repository, Sandbox(kind="process"))
    for each in made.site.sandboxes.values():
        each.close()


def test_a_node_takes_what_is_for_it_alone_and_for_its_gpus(node: Node, process_bench: Bench, tmp_path: Path) -> None:
    node.settings.update(FIRSTBAD_GPUS="2xFake-80GB,1xOther-24GB", FIRSTBAD_GPU_DIR=str(tmp_path))
    node.start()
    gpus = node.next(Task.NODE, event="booted")["gpus"]
    assert [(gpu["index"], gpu["model"], gpu["memory_bytes"] >> 30) for gpu in gpus] == [
        (0, "Fake-80GB", 80),
        (1, "Fake-80GB", 80),
        (2, "Other-24GB", 24),
    ]
    for queue in (node_queue("node-1"), gpu_queue("fake-80gb"), gpu_queue("other-24gb"), Queue.PROBE):
        order = process_bench.order("true")
        node.send(order, queue)
        assert node.result(order.probe).outcome is not None
    order = process_bench.order("true", gpus=Gpus(count=2, model="fake-80gb"))
    node.send(order, gpu_queue("fake-80gb"))
    assert node.result(order.probe).outcome is not None
    assert [node.next(Task.STARTED, id=order.probe)["leased"] for _ in range(2)] == [False, True]


def test_a_node_that_is_taken_out_takes_no_probe_until_it_is_put_back(node: Node, process_bench: Bench) -> None:
    client = node.broker.client()
    client.set(out_key("node-1"), "1")
    node.ready()
    order, own = process_bench.order("true"), process_bench.order("true")
    node.send(order)
    node.send(own, node_queue("node-1"))
    # It goes on with the rest.
    node.send_build(process_bench, "k1")
    assert node.next(Task.BUILT)["failure"] is not None
    assert (client.llen(Queue.PROBE), client.llen(node_queue("node-1"))) == (1, 1)
    client.delete(out_key("node-1"))
    assert node.result(order.probe).outcome is not None
    assert node.result(own.probe).outcome is not None
    # Now while it runs.
    client.set(out_key("node-1"), "1")
    eventually(lambda: node.log.read_text().count("was taken out") == 2)
    # Its connection to the broker may have come and gone meanwhile.
    client.client_kill_filter(_type="normal", skipme=True)
    last = process_bench.order("true")
    node.send(last)
    node.send_build(process_bench, "k2")
    node.next(Task.BUILT, key="k2")
    assert client.llen(Queue.PROBE) == 1


def test_an_order_that_slips_through_is_a_fault(broker: Broker, process_bench: Bench, tmp_path: Path) -> None:
    settings = {"redis_url": broker.url, "work_dir": tmp_path / "node", "node": "node-1", "sandboxes": ("process",)}
    worker = Worker(Settings(**settings))  # type: ignore[arg-type]
    broker.client().set(out_key("node-1"), "1")
    order = process_bench.order("true")
    worker.probe(order.model_dump(mode="json"))
    heard = Node(broker, tmp_path / "node", tmp_path / "worker.log")
    fault = heard.result(order.probe).fault
    assert fault is not None and fault.kind == "node-out"


def test_what_is_taken_up_again_is_watched_over_before_the_worker_takes_orders(broker: Broker, tmp_path: Path) -> None:
    worker = Worker(Settings(redis_url=broker.url, work_dir=tmp_path / "node", sandboxes=("process",)))
    key, stop = ("probe", "p1", 1), Stop()
    worker.adopt()
    assert worker.keeper.again(key, stop)
    broker.client().delete(lease_key(*key))
    eventually(lambda: broker.client().exists(lease_key(*key)))
    broker.client().set(cancel_key(*key), "1")
    eventually(lambda: stop.reason == CANCELLED)
    worker.keeper.close()


def test_the_queues_of_a_role_are_each_named_once() -> None:
    assert of_builds(("build",)) == ("build",)
    assert of_builds(("run",)) == ()
    assert of_probes(("build",), "n", ()) == ()
    assert of_probes(("run",), "n", ()) == ("node.n", "probe.cpu")


@pytest.mark.parametrize("wanted", [Gpus(count=1, model="h100"), Gpus(count=3, model="fake-80gb")])
def test_gpus_that_the_node_never_has_are_a_fault(gpu_bench: Bench, wanted: Gpus) -> None:
    fault = gpu_bench.probe("true", gpus=wanted).fault
    assert fault is not None and fault.kind == "gpus"
    assert wanted.model in fault.message


def test_who_holds_a_leased_card_after_the_run_is_told(gpu_bench: Bench, tmp_path: Path) -> None:
    order = gpu_bench.order("echo leased; until test -e go; do sleep 0.05; done", gpus=Gpus(count=2, model="fake-80gb"))
    probe = Background(gpu_bench, order)
    job = gpu_bench.job(order.probe)
    eventually(lambda: (job / "out" / "log").exists() and "leased" in (job / "out" / "log").read_text())
    (tmp_path / "held-1").write_text(str(os.getpid()))
    (job / "work" / "tree" / "go").touch()
    result = probe.finished()
    assert result is not None and result.outcome is not None
    environment = result.outcome.environment
    assert environment["gpus"] == "0: Fake-80GB, 1: Fake-80GB"
    assert environment["gpu_free_bytes"] == str(80 * 1024**3)
    assert environment["gpu_held_by"].startswith(f"GPU 1 is held by pid {os.getpid()}")
    assert "gpu_held_by" not in gpu_bench.outcome("true").environment
