"""Traces of orders, received as a collector would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.waiting import eventually
from tests.worker.bench import SERVER, Bench
from tests.worker.node import Node
from tests.worker.otlp import Receiver
from worker.contract import BuildOrder, Gpus, Limits, Queue, Reproduction, Serve, Task

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ABOVE = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def test_an_order_is_one_span_below_that_of_the_service_and_its_phases_are_below_it(
    node: Node, process_bench: Bench, receiver: Receiver
) -> None:
    node.settings.update(FIRSTBAD_OTLP_ENDPOINT=receiver.endpoint, FIRSTBAD_GPUS="1xFake-80GB")
    node.settings["FIRSTBAD_GPU_DIR"] = str(node.work_dir / "gpus")
    node.ready()
    control = Reproduction(script="true")
    failing = process_bench.order("exit 3", trace=ABOVE, control=control, gpus=Gpus(count=1, model="fake-80gb"))
    broken = process_bench.order("true", trace=ABOVE).model_dump(mode="json")
    broken["source"]["sha"] = "0" * 40
    build = BuildOrder(
        key="k-traced",
        attempt=1,
        source=process_bench.source(),
        command='uv build --wheel --out-dir "$FIRSTBAD_OUT"',
        sandbox=process_bench.sandbox,
        limits=Limits(timeout_s=60.0),
        trace=ABOVE,
    )
    serve = Serve(command=SERVER, within_s=30.0, ready_http="/")
    served = process_bench.order(serve=serve, check="true", trace=ABOVE)
    node.send(served)
    node.result(served.probe)
    node.send(failing, "probe.gpu.fake-80gb")
    node.app().send_task(Task.PROBE, args=[broken], queue=Queue.PROBE, ignore_result=True)
    node.app().send_task(Task.BUILD, args=[build.model_dump(mode="json")], queue=Queue.BUILD, ignore_result=True)
    node.result(failing.probe)
    assert node.result(broken["probe"]).fault is not None
    node.next(Task.BUILT, key="k-traced")
    assert node.end() == 0
    eventually(lambda: len(receiver.named("probe")) == 3 and receiver.named("build"))
    assert receiver.services == {"firstbad-worker"}
    spans = {span.attributes.get("firstbad.probe", "build"): span for span in receiver.named("probe")}
    spans["build"] = next(span for span in receiver.named("build") if span.parent == PARENT)
    assert {(span.trace, span.parent) for span in spans.values()} == {(TRACE, PARENT)}

    tried = spans[failing.probe]
    assert tried.attributes["firstbad.bisection"] == "b1" and tried.attributes["firstbad.exit_status"] == 3
    assert tried.attributes["firstbad.attempt"] == 1 and tried.attributes["firstbad.gpu_used_s"] > 0
    parts = {span.name: span for span in receiver.below(tried)}
    assert {"fetch", "gpus", "script", "store", "control"} <= parts.keys()
    assert {"script", "store"} <= {span.name for span in receiver.below(parts["control"])}
    for span in parts.values():
        assert tried.begin <= span.begin <= span.end <= tried.end

    assert {"fetch", "start", "ready", "check", "store"} <= {span.name for span in receiver.below(spans[served.probe])}
    refused = spans[broken["probe"]]
    assert refused.failed and refused.attributes["firstbad.fault"] == "source"
    assert [(span.name, span.failed) for span in receiver.below(refused)] == [("fetch", True)]
    assert {"fetch", "build", "store"} <= {span.name for span in receiver.below(spans["build"])}


def test_opentelemetry_is_needed_only_where_an_endpoint_is_set() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
import worker.tasks
from worker.errors import NodeFault
from worker.tracing import tracing
tracing("", "node-1")
try:
    tracing("http://127.0.0.1:1", "node-1")
except NodeFault as fault:
    print(fault.advice)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert said.startswith("Install firstbad[otel]")


def test_a_collector_that_is_away_keeps_nobody_waiting(node: Node, process_bench: Bench, receiver: Receiver) -> None:
    receiver.close()
    node.settings["FIRSTBAD_OTLP_ENDPOINT"] = receiver.endpoint
    node.ready()
    order = process_bench.order("true", trace="nonsense")
    node.send(order)
    assert node.result(order.probe).outcome is not None
    assert node.end(seconds=20.0) in (0, 1)
