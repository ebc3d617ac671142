"""Figures as families of metrics, by the names that Prometheus expects. Labels have few values: no ids, no names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import inf

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from service.application import health
from service.application.nodes import alive
from service.application.queues import BUILD, CPU
from service.domain.bisection import Node, Origin
from service.domain.evidence import Verdict
from service.domain.figures import RUNS_S, WAITS_S, Figures, Tally
from service.domain.lifecycle import BisectionState

#: Kinds and classes come from nodes: of more than so many the rarest are told as one.
MOST, OTHERS = 60, "other"
_PROBES = (*map(str, Verdict), "measured", "faulted", "cancelled")
_BUILDS = (*map(str, Origin), "failed", "faulted", "cancelled")
_WHEELS = ("none", "reused", *map(str, Origin), "failed")
_ORDERS = ("waiting", "sent", "running")
_NODES = ("alive", "out", "silent", "left")


def families(figures: Figures) -> Iterator[Metric]:
    tallies: dict[str, list[Tally]] = defaultdict(list)
    for tally in figures.tallies:
        tallies[tally.name].append(tally)
    yield _counter("firstbad_probes", "Probes that are over", "verdict", tallies["probes"], _PROBES)
    yield _faults(tallies["probe faults"], tallies["build faults"])
    yield _counter("firstbad_probe_wheels", "How probes that ran came by a wheel", "wheel", tallies["wheels"], _WHEELS)
    yield _counter("firstbad_builds", "Builds that are over", "result", tallies["builds"], _BUILDS)
    waits, runs = WAITS_S, RUNS_S
    yield _histogram("firstbad_probe_turn_wait_seconds", "From due to sent", "queue", tallies["turn waits"], waits)
    yield _histogram(
        "firstbad_probe_queue_wait_seconds", "From sent to begun by a node", "queue", tallies["queue waits"], waits
    )
    yield _histogram("firstbad_probe_run_seconds", "Runs of probes", "verdict", tallies["runs"], runs)
    yield _histogram("firstbad_build_seconds", "Builds and fetches of wheels", "result", tallies["build runs"], runs)
    yield from _gpus(tallies["gpu leased"], tallies["gpu used"])
    yield from _now(figures)


def _counter(name: str, text: str, label: str, tallies: Iterable[Tally], known: Iterable[str] = ()) -> Metric:
    found = CounterMetricFamily(name, text, labels=(label,))
    counts = dict.fromkeys(known, 0) | _few(Counter({tally.label: tally.count for tally in tallies}))
    for value, count in counts.items():
        found.add_metric((value,), count)
    return found


def _few(counts: Counter[str]) -> dict[str, int]:
    if len(counts) <= MOST:
        return dict(sorted(counts.items()))
    kept = dict(counts.most_common(MOST))
    return {**kept, OTHERS: kept.get(OTHERS, 0) + counts.total() - sum(kept.values())}


def _faults(probes: Iterable[Tally], builds: Iterable[Tally]) -> Metric:
    found = CounterMetricFamily("firstbad_faults", "What nodes or we did wrong", labels=("of", "kind"))
    for of, tallies in (("probe", probes), ("build", builds)):
        for kind, count in _few(Counter({tally.label: tally.count for tally in tallies})).items():
            found.add_metric((of, kind), count)
    return found


def _histogram(name: str, text: str, label: str, tallies: Iterable[Tally], bounds: tuple[float, ...]) -> Metric:
    found = HistogramMetricFamily(name, text, labels=(label,))
    by_label: dict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_label[tally.label].append(tally)
    for value in sorted(by_label)[:MOST]:
        mine = by_label[value]
        buckets = [(_bound(most), float(sum(tally.count for tally in mine if tally.bound <= most))) for most in bounds]
        found.add_metric((value,), buckets, sum(tally.total for tally in mine))
    return found


def _bound(most: float) -> str:
    return "+Inf" if most == inf else str(most)


def _gpus(leased: Iterable[Tally], used: Iterable[Tally]) -> Iterator[Metric]:
    """Cards times seconds."""
    all_s, used_s = sum(tally.total for tally in leased), sum(tally.total for tally in used)
    yield CounterMetricFamily("firstbad_gpu_leased_seconds", "Cards times seconds that probes held", all_s)
    yield CounterMetricFamily("firstbad_gpu_used_seconds", "Of these, while a run was under way", used_s)
    idle_s = max(0.0, all_s - used_s)
    yield CounterMetricFamily("firstbad_gpu_idle_seconds", "Of these, while none was", idle_s)


def _now(figures: Figures) -> Iterator[Metric]:
    states = {str(state): figures.bisections.get(state, 0) for state in BisectionState}
    yield _gauge("firstbad_bisections", "Bisections by state", ("state",), {(name,): n for name, n in states.items()})
    yield GaugeMetricFamily("firstbad_bisections_paused", "Live ones that are paused", figures.paused)
    yield _orders(figures)
    yield from _nodes(figures)
    yield GaugeMetricFamily("firstbad_outbox_messages", "Messages that are due and not sent", figures.undelivered)
    due = figures.oldest_at or figures.at
    yield _age("firstbad_outbox_oldest_seconds", "Since the oldest of them was due", figures, due)
    there = health.there(figures.beats, figures.at)
    yield GaugeMetricFamily("firstbad_control_workers", "Control workers that tell of themselves", len(there))
    swept = [beat.swept_at for beat in figures.beats if beat.swept_at is not None]
    if swept:
        yield _age("firstbad_sweep_age_seconds", "Since the end of the last sweep", figures, max(swept))
    held = [beat.oldest_at for beat in there if beat.oldest_at is not None]
    text = "For how long the oldest message is in hand of a control worker, preparations aside"
    yield _age("firstbad_control_oldest_message_seconds", text, figures, min(held, default=figures.at))


def _age(name: str, text: str, figures: Figures, since: datetime) -> Metric:
    return GaugeMetricFamily(name, text, max(0.0, (figures.at - since).total_seconds()))


def _orders(figures: Figures) -> Metric:
    queues = {("probe", CPU), ("build", BUILD)} | {(found.kind, found.queue) for found in figures.standings}
    shown = sorted(queues)[:MOST]
    counts: dict[tuple[str, ...], int] = {(*queue, state): 0 for queue in shown for state in _ORDERS}
    counts |= {(s.kind, s.queue, s.state): s.count for s in figures.standings if (s.kind, s.queue, s.state) in counts}
    text = "Probes and builds that wait for their turn, were sent to a queue, or run"
    return _gauge("firstbad_orders", text, ("kind", "queue", "state"), counts)


def _nodes(figures: Figures) -> Iterator[Metric]:
    there = {node.name for node in alive(figures.nodes, figures.at)}
    counts, slots, cards = Counter[str](), Counter[str](), Counter[str]()
    for node in figures.nodes:
        state = _state(node, node.name in there)
        counts[state] += 1
        slots[state] += node.slots
        cards[state] += len(node.gpus)
    for name, text, found in (
        ("firstbad_nodes", "Nodes by state", counts),
        ("firstbad_node_slots", "Builds and probes at once that nodes can do", slots),
        ("firstbad_node_gpus", "Cards of nodes", cards),
    ):
        yield _gauge(name, text, ("state",), {(state,): found[state] for state in _NODES})


def _state(node: Node, there: bool) -> str:
    if node.state == "left":
        return "left"
    if not there:
        return "silent"
    return "out" if node.out else "alive"


def _gauge(name: str, text: str, labels: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> Metric:
    found = GaugeMetricFamily(name, text, labels=labels)
    for values, count in counts.items():
        found.add_metric(values, count)
    return found
