"""A whole service that is watched: one bisection in its metrics, its log lines and its trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.domain.lifecycle import BisectionState
from tests.end_to_end.service import Service, free_port, until
from tests.repositories import NewCommit, build_repository
from tests.worker.otlp import Receiver

COMMITS, FIRST_BAD = 12, 7


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


Watched = Callable[[Receiver, int], Service]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = []

    def start(receiver: Receiver, port: int) -> Service:
        settings = {"log_format": "json", "metrics_port": str(port), "otlp_endpoint": receiver.endpoint}
        made.append(Service(tmp_path / "home", **settings))
        return made[0].start()

    yield start
    for process in made[0].processes():
        process.kill()


def metrics(url: str) -> dict[tuple[str, ...], float]:
    text = httpx.get(f"{url}/metrics", trust_env=False, timeout=30).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(s.name, *(value for _, value in sorted(s.labels.items()))): s.value for s in samples}


def test_a_bisection_can_be_followed_through_metrics_lines_and_its_trace(
    tmp_path: Path, receiver: Receiver, watched: Watched
) -> None:
    commits = [NewCommit(files={"number": str(number)}) for number in range(COMMITS)]
    shas = build_repository(tmp_path / "repository", commits)
    port = free_port()
    service = watched(receiver, port)
    script = f"test $(cat number) -lt {FIRST_BAD}"
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": shas[0], "bad": shas[-1]}
    id = service.submit({**document, "script": script})
    assert service.ended(id).state is BisectionState.FOUND
    with service.client() as client:
        probes = client.probes(id)
    tried = len(probes)
    until(lambda: metrics(service.url)[("firstbad_probes_total", "bad")] > 1, "its probes are counted")
    told, control = metrics(service.url), metrics(f"http://127.0.0.1:{port}")
    assert service.interrupt() == 0

    assert told[("firstbad_probes_total", "bad")] + told[("firstbad_probes_total", "good")] == tried
    assert told[("firstbad_probe_run_seconds_count", "good")] == told[("firstbad_probes_total", "good")]
    assert told[("firstbad_probe_queue_wait_seconds_count", "cpu")] == tried
    assert told[("firstbad_bisections", "found")] == 1 and told[("firstbad_node_slots", "alive")] == 2
    assert told[("firstbad_step_seconds_count", "ok", "submit")] == 1
    assert control[("firstbad_messages_total", "ok", "probed")] == tried
    assert control[("firstbad_step_seconds_count", "ok", "advance")] >= tried
    assert control[("firstbad_sends_total", "ok", "probe")] == tried

    lines = {name: _lines(service.home / "logs" / f"{name}.log") for name in ("api", "control", "worker")}
    ended = [line for line in lines["control"] if line["event"].startswith("probed: ok in ")]
    assert {line["probe"] for line in ended} == {probe.id for probe in probes}
    assert {line["bisection"] for line in ended} == {id} and all(line["attempt"] == "1" for line in ended)
    assert any(line["logger"] == "uvicorn.error" for line in lines["api"])
    assert any(line["logger"].startswith("celery.") for line in lines["control"])

    trace = [span for span in receiver.spans if span.trace == hashlib.sha256(id.encode()).hexdigest()[:32]]
    sends = {span.id: span.attributes["firstbad.probe"] for span in trace if "firstbad.probe" in span.attributes}
    runs = [span for span in trace if span.name == "probe"]
    assert {sends[span.parent] for span in runs} == {probe.id for probe in probes}
    assert receiver.services == {"firstbad-api", "firstbad-control", "firstbad-worker"}


def _lines(file: Path) -> list[dict[str, str]]:
    """But for what Celery says by itself when it is told to end."""
    said = [line for line in file.read_text().splitlines() if line not in ("", "worker: Warm shutdown (MainProcess)")]
    return [json.loads(line) for line in said]
