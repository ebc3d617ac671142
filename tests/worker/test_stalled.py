"""A Redis that neither answers nor refuses: stopped by a signal, as a machine that swaps or a network that swallows."""

from __future__ import annotations

import signal

from tests.waiting import eventually
from tests.worker.bench import Bench
from tests.worker.node import Node
from worker.contract import Task, lease_key

WAITS = "until test -e go; do sleep 0.1; done"


def test_a_redis_that_stands_still_costs_no_result_and_ends_no_run(node: Node, process_bench: Bench) -> None:
    node.settings["FIRSTBAD_SLOTS"] = "2"
    node.ready()
    process_bench.limits = {"timeout_s": 600.0}
    ends, goes_on = process_bench.order(f"{WAITS}; echo precious"), process_bench.order(WAITS)
    for order in (ends, goes_on):
        node.send(order)
        node.next(Task.STARTED, id=order.probe)
    redis = node.broker.process
    assert redis is not None and node.process is not None
    redis.send_signal(signal.SIGSTOP)
    try:
        node.go(ends)
        outgoing = node.work_dir / "outgoing"
        eventually(lambda: list(outgoing.glob("*.json")))
        said = ("leases may pass", "is kept on disk")
        eventually(lambda: all(line in node.log.read_text() for line in said))
    finally:
        redis.send_signal(signal.SIGCONT)
    client = node.broker.client()
    client.delete(lease_key("probe", goes_on.probe, 1))
    eventually(lambda: client.exists(lease_key("probe", goes_on.probe, 1)))
    found = node.result(ends.probe).outcome
    assert found is not None and found.log is not None and found.log.last_lines == ("precious",)
    eventually(lambda: not list(outgoing.iterdir()))
    node.go(goes_on)
    done = node.result(goes_on.probe).outcome
    assert done is not None and done.exit_status == 0
    last = process_bench.order("true")
    node.send(last)
    assert node.result(last.probe).outcome is not None
    assert node.end() == 0
