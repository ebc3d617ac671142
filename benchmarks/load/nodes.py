"""Execution nodes whose runs take no time: `python -m benchmarks.load.nodes REDIS_URL SHAS NODES SLOTS`.

They speak the wire contract over Celery and keep the keys of each attempt as a real worker does. SHAS is a file of
commits, parents first; a script `# first bad: N` fails from the N-th on. SIGTERM ends them, and they print how many
results they sent.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import kombu
import redis

from worker import contract
from worker.contract import LEASE_S, NodeReport, Outcome, Started, Task, cancel_key, lease_key, sent_key, taken_key
from worker.contract.outcomes import Frame, Log, Phase, ProbeResult, Signature
from worker.node import BEAT_S, TAKEN_S
from worker.queues import make_app

FIRST_BAD = re.compile(r"first bad: (\d+)")
FACTS = {"hardware": "2 x cpu", "process.python": "3.11"}
PHASES = tuple(Phase(name=name, at_s=at, seconds=0.1) for at, name in enumerate(("fetch", "environment", "script")))
LINES = tuple(f"step {number}: loading shard {number} of 20 took 0.1 s" for number in range(19))


def outcome(bad: bool) -> Outcome:
    """About as much as a real run tells."""
    last = "RuntimeError: graph capture failed" if bad else "all is well"
    frames = (Frame(file="engine/core.py", function="step"), Frame(file="engine/runner.py", function="run"))
    signature = Signature(kind="python", type="RuntimeError", message="graph capture failed", frames=frames, line=20)
    return Outcome(
        exit_status=int(bad),
        ended_in="script",
        phases=PHASES,
        log=Log(path="logs/none", bytes=20_000, last_lines=(*LINES, last)),
        environment={"python": "3.11.2", "machine": "x86_64", "sandbox": "process"},
        signature=signature if bad else None,
    )


class Nodes:
    def __init__(self, url: str, shas: list[str], names: list[str], slots: int) -> None:
        self._app, self._redis = make_app(url), redis.Redis.from_url(url)
        self._place = {sha: number for number, sha in enumerate(shas)}
        self._names, self._slots, self.sent, self.dropped = names, slots, 0, 0
        self._outcomes = {bad: outcome(bad).model_dump(mode="json") for bad in (False, True)}
        self._over = False

    def run(self) -> None:
        queues = [kombu.Queue(str(contract.Queue.PROBE)), *map(kombu.Queue, map(contract.node_queue, self._names))]
        self._report("booted")
        beat = monotonic() + BEAT_S
        with self._app.connection_for_read() as connection:
            most = self._slots * len(self._names)
            with connection.Consumer(queues, callbacks=[self._take], no_ack=True, prefetch_count=most):
                while not self._over:
                    if monotonic() >= beat:
                        self._report("alive")
                        beat = monotonic() + BEAT_S
                    try:
                        connection.drain_events(timeout=0.2)
                    except TimeoutError:
                        continue

    def end(self, *_: object) -> None:
        self._over = True

    def _take(self, body: Any, message: Any) -> None:
        order = body[0][0]
        key = ("probe", order["probe"], order["attempt"])
        name = self._names[self.sent % len(self._names)]
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(taken_key(*key), name, nx=True, ex=TAKEN_S)
            pipe.exists(cancel_key(*key))
            first, cancelled = pipe.execute()
        if not first or cancelled:
            self.dropped += 1
            self._redis.delete(sent_key(*key))
            return
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(lease_key(*key), name, ex=LEASE_S)
            pipe.delete(sent_key(*key))
            pipe.execute()
        started = Started(kind="probe", id=order["probe"], attempt=order["attempt"], node=name)
        self._send(Task.STARTED, started.model_dump(mode="json"))
        self._send(Task.PROBED, self._result(order, name))
        self.sent += 1

    def _result(self, order: dict[str, Any], name: str) -> dict[str, Any]:
        found = FIRST_BAD.search(order["reproduction"]["script"])
        assert found is not None
        bad = self._place[order["source"]["sha"]] >= int(found[1])
        result = ProbeResult(probe=order["probe"], attempt=order["attempt"], node=name).model_dump(mode="json")
        told = self._outcomes[bad]
        log = {**told["log"], "path": f"logs/{order['probe']}.{order['attempt']}.log"}
        return {**result, "outcome": {**told, "log": log}}

    def _report(self, event: Any) -> None:
        for name in self._names:
            report = NodeReport(node=name, event=event, slots=self._slots, facts=FACTS)
            self._send(Task.NODE, report.model_dump(mode="json"))

    def _send(self, task: Task, message: dict[str, Any]) -> None:
        queue = str(contract.Queue.CONTROL)
        self._app.send_task(str(task), args=[message], queue=queue, retry=False, ignore_result=True)


def main() -> None:
    url, shas, count, slots = sys.argv[1], Path(sys.argv[2]).read_text().split(), int(sys.argv[3]), int(sys.argv[4])
    nodes = Nodes(url, shas, [f"node-{number}" for number in range(count)], slots)
    signal.signal(signal.SIGTERM, nodes.end)
    nodes.run()
    print(nodes.sent, nodes.dropped, flush=True)


if __name__ == "__main__":
    main()
