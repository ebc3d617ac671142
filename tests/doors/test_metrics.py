"""`/metrics` as Prometheus reads it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import inf

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as as_open_metrics
from prometheus_client.parser import text_string_to_metric_families

from service.adapters.telemetry.meters import Meters
from service.application.ports import StoreBusy
from service.domain.bisection import Gpu, Node
from service.domain.errors import NotFound
from service.domain.figures import RUNS_S, WAITS_S, Beat, Figures, Standing, Tally
from service.domain.lifecycle import BisectionState
from service.doors import metrics
from service.doors.metrics.families import MOST, families
from service.web import create_app
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


GPU = Gpu(0, "H100", "h100", 80)
FIGURES = Figures(
    at=NOW,
    tallies=(
        Tally("probes", "bad", inf, 7),
        Tally("probe faults", "lost", inf, 2),
        Tally("build faults", 'odd "kind"\n', inf, 1),
        Tally("turn waits", "cpu", 5.0, 3, 9.0),
        Tally("turn waits", "cpu", inf, 1, 50000.0),
        Tally("runs", "good", 60.0, 2, 90.0),
        Tally("build runs", "built", 600.0, 1, 400.0),
        Tally("builds", "built", inf, 1),
        Tally("wheels", "reused", inf, 4),
        Tally("gpu leased", "", inf, 7, 100.0),
        Tally("gpu used", "", inf, 7, 75.0),
    ),
    standings=(Standing("probe", "gpu.h100", "waiting", 5),),
    bisections={BisectionState.CHECKING_ENDS: 3},
    paused=1,
    nodes=(
        Node("a", 2, NOW, "alive", gpus=(GPU, GPU)),
        Node("b", 4, NOW, "alive", out="broken"),
        Node("c", 8, NOW - timedelta(hours=1), "alive"),
        Node("d", 16, NOW, "left"),
    ),
    undelivered=6,
    oldest_at=NOW - timedelta(seconds=12),
    beats=(
        Beat("x", NOW, NOW, NOW, 5.0, 8, swept_at=NOW - timedelta(seconds=4), oldest_at=NOW - timedelta(seconds=9)),
        Beat("killed", ago(31), ago(99), ago(40), 5.0, 8, busy=1, swept_at=ago(50), oldest_at=ago(40)),
    ),
)


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    flow, meters = FakeFlow(), Meters()
    flow.counted = FIGURES
    with meters.step("send", "probe"), meters.transaction():
        pass
    meters.handled("probed", "ok")
    app = create_app(flow, meters=meters.registry)
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        yield client


def values(found: list[Metric]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in found
        for sample in family.samples
    }


def test_prometheus_reads_what_the_database_tells_and_what_the_process_measures(http: httpx.Client) -> None:
    answer = http.get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=")
    found = values(list(text_string_to_metric_families(answer.text)))
    expected = {
        ("firstbad_probes_total", "bad"): 7,
        ("firstbad_probes_total", "good"): 0,
        ("firstbad_faults_total", "lost", "probe"): 2,
        ("firstbad_faults_total", 'odd "kind"\n', "build"): 1,
        ("firstbad_probe_turn_wait_seconds_bucket", "1.0", "cpu"): 0,
        ("firstbad_probe_turn_wait_seconds_bucket", "5.0", "cpu"): 3,
        ("firstbad_probe_turn_wait_seconds_bucket", "43200.0", "cpu"): 3,
        ("firstbad_probe_turn_wait_seconds_bucket", "+Inf", "cpu"): 4,
        ("firstbad_probe_turn_wait_seconds_count", "cpu"): 4,
        ("firstbad_probe_turn_wait_seconds_sum", "cpu"): 50009,
        ("firstbad_probe_run_seconds_sum", "good"): 90,
        ("firstbad_build_seconds_count", "built"): 1,
        ("firstbad_builds_total", "built"): 1,
        ("firstbad_probe_wheels_total", "reused"): 4,
        ("firstbad_gpu_leased_seconds_total",): 100,
        ("firstbad_gpu_used_seconds_total",): 75,
        ("firstbad_gpu_idle_seconds_total",): 25,
        ("firstbad_orders", "probe", "gpu.h100", "waiting"): 5,
        ("firstbad_orders", "probe", "gpu.h100", "running"): 0,
        ("firstbad_orders", "build", "build", "waiting"): 0,
        ("firstbad_bisections", "checking ends"): 3,
        ("firstbad_bisections", "found"): 0,
        ("firstbad_bisections_paused",): 1,
        ("firstbad_nodes", "silent"): 1,
        ("firstbad_node_slots", "alive"): 2,
        ("firstbad_node_slots", "out"): 4,
        ("firstbad_node_slots", "left"): 16,
        ("firstbad_node_gpus", "alive"): 2,
        ("firstbad_outbox_messages",): 6,
        ("firstbad_outbox_oldest_seconds",): 12,
        ("firstbad_control_workers",): 1,
        ("firstbad_sweep_age_seconds",): 4,
        ("firstbad_control_oldest_message_seconds",): 9,
        ("firstbad_sends_total", "ok", "probe"): 1,
        ("firstbad_step_seconds_count", "ok", "send"): 1,
        ("firstbad_transaction_seconds_count", "ok"): 1,
        ("firstbad_messages_total", "ok", "probed"): 1,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found[("process_open_fds",)] > 0


def test_who_asks_for_open_metrics_gets_them(http: httpx.Client) -> None:
    answer = http.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    found = {family.name: family for family in as_open_metrics(answer.text)}
    assert found["firstbad_probes"].type == "counter"
    assert found["firstbad_probe_run_seconds"].type == "histogram"


def test_names_follow_the_conventions_of_prometheus() -> None:
    for family in families(FIGURES):
        assert re.fullmatch(r"firstbad(_[a-z]+)+", family.name) and family.documentation
        if "seconds" in family.name:
            assert family.name.endswith("_seconds")
        if family.type == "histogram":
            bounds = WAITS_S if "wait" in family.name else RUNS_S
            for value in {
                sample.labels[label] for sample in family.samples for label in sample.labels if label != "le"
            }:
                buckets = [s for s in family.samples if s.name.endswith("_bucket") and value in s.labels.values()]
                assert [float(s.labels["le"]) for s in buckets] == list(bounds)
                assert [s.value for s in buckets] == sorted(s.value for s in buckets)


def test_however_many_kinds_nodes_make_up_the_labels_are_few_and_nothing_is_lost() -> None:
    many = tuple(Tally("probe faults", f"kind-{n}", inf, n + 1) for n in range(500))
    queues = tuple(Standing("probe", f"gpu.{n}", "waiting", 1) for n in range(500))
    found = {family.name: family for family in families(Figures(NOW, tallies=many, standings=queues))}
    faults = found["firstbad_faults"].samples
    assert len(faults) == MOST + 1
    assert sum(sample.value for sample in faults) == sum(tally.count for tally in many)
    assert next(sample.value for sample in faults if sample.labels["kind"] == "other") > 0
    assert len(found["firstbad_orders"].samples) <= 3 * MOST


def test_a_service_that_has_done_nothing_yet_is_told_of_in_full() -> None:
    found = values(list(families(Figures(NOW))))
    assert found[("firstbad_probes_total", "bad")] == found[("firstbad_gpu_idle_seconds_total",)] == 0
    assert ("firstbad_sweep_age_seconds",) not in found


def test_a_count_that_shrinks_is_shown_as_it_was() -> None:
    shown = [Figures(NOW, tallies=(Tally("builds", "built", inf, n),)) for n in (5, 4, 6)]
    snapshots = metrics.Snapshots(lambda: shown.pop(0), fresh_s=-1.0)
    assert [snapshots().tallies[0].count for _ in range(3)] == [5, 5, 6]


def test_two_who_look_at_the_same_time_are_told_the_same_without_counting_twice() -> None:
    asked: list[int] = []

    def count() -> Figures:
        asked.append(1)
        return Figures(NOW)

    snapshots = metrics.Snapshots(count)
    assert snapshots() is snapshots()
    assert len(asked) == 1


def test_a_database_that_is_away_or_hangs_is_told_and_kept_apart_from_all_else() -> None:
    flow, hangs = FakeFlow(), threading.Event()

    def away() -> Figures:
        raise StoreBusy("the database cannot do it now: locked")

    def hang() -> Figures:
        hangs.wait(60)
        return Figures(NOW)

    for count, said in ((away, "locked"), (hang, "within")):
        flow.figures = count  # type: ignore[method-assign]
        app = create_app(flow, count_within_s=0.3)
        with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
            answers = [client.get("/metrics") for _ in range(2)]
            assert [(answer.status_code, said in answer.text) for answer in answers] == [(503, True)] * 2
            assert client.get("/healthz").status_code == 200
    hangs.set()


def test_steps_are_measured_by_how_they_ended() -> None:
    meters = Meters()
    for error in (NotFound("no"), StoreBusy("busy"), RuntimeError("a bug")):
        with pytest.raises(type(error)), meters.step("submit"):
            raise error
        with pytest.raises(type(error)), meters.transaction():
            raise error
    found = values(list(meters.registry.collect()))
    for result in ("refused", "busy", "failed"):
        assert found[("firstbad_step_seconds_count", result, "submit")] == 1
        assert found[("firstbad_transaction_seconds_count", result)] == 1


def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    said = r"FIRSTBAD_METRICS_PORT: port \d+ of 127.0.0.1: .*name another"
    with serving(create_app(FakeFlow())) as url, pytest.raises(OSError, match=said):
        Meters().serve("127.0.0.1", int(url.rpartition(":")[2]))
