"""Which nodes there are for a probe, and those that were taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from service.application import queues, wording
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Message, Node, Probe
from service.domain.errors import NotFound
from service.domain.evidence import Fault
from service.domain.lifecycle import LIVE_BISECTIONS
from service.domain.recipe import Resources
from service.domain.recipe_rules import fits_model

#: A node that has said nothing for so long has no room.
SILENT = timedelta(seconds=60)


#: The fault of a node whose messages are of another version.
OTHER_VERSION = "version"
#: Faults of a node that is not fit for it at all, where others may be.
REFUSED = frozenset({"other-python", "sandbox-refused", "node-out", OTHER_VERSION})
#: How it is said why a node is out whose messages cannot be read. It is in again by itself once they can.
STRANGE = "speaks version "


def beat(tx: Transaction, node: Node) -> None:
    """Keeps what a node says of itself, which says nothing of whether it was taken out."""
    known = tx.node(node.name, lock=True)
    out = known.out if known is not None else ""
    tx.save_node(replace(node, out="" if out.startswith(STRANGE) else out))
    if out.startswith(STRANGE):
        tx.post(Message("node", f"node:{node.name}:read:{node.seen_at.isoformat()}", {"node": node.name}), node.seen_at)


def stranger(tx: Transaction, name: str, why: str, now: datetime, *, left: bool = False) -> None:
    """A node whose messages are of another version is there and gets no probes; what else it says is not believed.
    `why`: begins with STRANGE."""
    found = tx.node(name, lock=True)
    known = found or Node(name, 0, now, "alive")
    out = why if not known.out or known.out.startswith(STRANGE) else known.out
    tx.save_node(replace(known, seen_at=now, state="left" if left else "alive", out=out))
    if found is None or out != found.out:
        tx.post(Message("node", f"node:{name}:strange:{now.isoformat()}", {"node": name}), now)


def alive(nodes: Collection[Node], now: datetime) -> tuple[Node, ...]:
    return tuple(node for node in nodes if node.state == "alive" and now - node.seen_at < SILENT)


def running(nodes: Collection[Node], now: datetime) -> tuple[Node, ...]:
    """Those that take probes."""
    return tuple(node for node in alive(nodes, now) if "run" in node.roles and not node.out)


def fitting(nodes: Collection[Node], wanted: Resources, gpu_class: str | None) -> tuple[Node, ...]:
    """Those that have the labels, the models and so many GPUs of the class (any, before there is one)."""
    able = [node for node in nodes if {*wanted.labels} <= {*node.labels} and {*wanted.models} <= {*node.models}]
    return tuple(node for node in able if gpu_class is None or _gpus(node)[gpu_class] >= wanted.gpus)


def _gpus(node: Node) -> Counter[str]:
    return Counter(gpu.gpu_class for gpu in node.gpus)


def gpu_class(wanted: Resources, nodes: Collection[Node], now: datetime) -> str | None:
    """The class of GPUs that a bisection's runs get: all the same, that of most nodes which have enough of them."""
    there = running(nodes, now)
    models = {gpu.gpu_class: gpu.model for node in there for gpu in node.gpus}
    named = [found for found, model in models.items() if fits_model(wanted, model)]
    count = {found: len(fitting(there, wanted, found)) for found in named}
    enough = sorted(found for found in named if count[found])
    return max(enough, key=lambda found: count[found], default=None)


def models(nodes: Collection[Node], now: datetime) -> list[str]:
    """How many GPUs of which model each node has, in words."""
    several = [Counter(gpu.model for gpu in node.gpus) for node in running(nodes, now)]
    return sorted({f"{number} x {model}" for found in several for model, number in found.items()})


def waits(bisection: Bisection, nodes: Collection[Node], now: datetime) -> tuple[str, ...]:
    """What a bisection that has begun waits for, when no node that takes probes has its GPUs any more."""
    wanted, resources = bisection.setup.gpu_class, bisection.request.recipe.resources
    there = running(nodes, now)
    if bisection.state not in LIVE_BISECTIONS or fitting(there, resources, wanted):
        return ()
    out = [f"{node.name} is out: {node.out}" for node in fitting(nodes, resources, wanted) if node.out]
    if wanted is None and not (resources.labels or resources.models):
        return ("; ".join(("waits for a node that takes probes", *out)),) if out else ()
    told = "; ".join((lacking(resources, nodes, now), *out))
    # While it is prepared, its notes may say so already.
    return () if told in bisection.notes else (told,)


def lacking(wanted: Resources, nodes: Collection[Node], now: datetime) -> str:
    """What is waited for while no node has all of it, and what there is."""
    if not (wanted.labels or wanted.models):
        return wording.waits_for_gpus(wanted, models(nodes, now))
    missing = sorted((node.name, _missing(node, wanted)) for node in running(nodes, now))
    return wording.waits_for_fit(wanted, missing, models(nodes, now))


def _missing(node: Node, wanted: Resources) -> tuple[str, ...]:
    """Labels and models that it lacks."""
    return tuple(sorted(({*wanted.labels} - {*node.labels}) | ({*wanted.models} - {*node.models})))


def another(tx: Transaction, probe: Probe, faults: Sequence[Fault], now: datetime) -> str | None:
    """A node for the next attempt that none of the faults is of, the one with least to do; None when there is none."""
    bisection = tx.bisection(probe.bisection_id)
    tried, unfit = {fault.node for fault in faults}, {fault.node for fault in faults if fault.kind in REFUSED}
    wanted, gpus = bisection.request.recipe.resources, bisection.setup.gpu_class
    there = fitting(running(tx.nodes(), now), wanted, gpus)
    if (measured := measured_on(tx, bisection)) is not None:
        comparable = alike(tx, bisection, measured, now)
        there = tuple(node for node in there if node.name in comparable)
    left = [node for node in there if node.name not in tried]
    if not left and unfit:
        # One that would refuse it is always the first to be free.
        left = [node for node in there if node.name not in unfit]
    if not left or not faults[-1].node:
        return None
    busy = tx.busy()
    return min(left, key=lambda node: (busy.get(node.name, 0), node.name)).name


def measured_on(tx: Transaction, bisection: Bisection) -> str | None:
    """The node that a number's further runs are compared with, that of the first one; None where none is over."""
    if bisection.request.metric is None:
        return None
    return first_of(tx.probes(bisection.id))


def first_of(probes: Sequence[Probe]) -> str | None:
    """The node of the first run of a number that is over."""
    return next((p.node for p in probes if p.outcome is not None and p.outcome.measurements), None)


def waits_for_alike(tx: Transaction, bisection: Bisection, now: datetime) -> tuple[str, ...]:
    """What a number that was measured waits for, when no node is there that it can be compared on."""
    name = measured_on(tx, bisection) if bisection.state in LIVE_BISECTIONS else None
    known = tx.node(name) if name is not None else None
    if name is None or known is None or alike(tx, bisection, name, now):
        return ()
    return (wording.waits_for_alike(name, _hardware(known), known.out),)


def alike(tx: Transaction, bisection: Bisection, name: str, now: datetime) -> tuple[str, ...]:
    """Nodes whose numbers can be compared with those of this one, which comes first: of the same hardware, and with the
    GPUs that the bisection's runs get. All of them take probes now."""
    known = tx.node(name)
    if known is None:
        return (name,)
    wanted, gpus = bisection.request.recipe.resources, bisection.setup.gpu_class
    there = [node for node in fitting(running(tx.nodes(), now), wanted, gpus) if _hardware(node) == _hardware(known)]
    return tuple(sorted((node.name for node in there), key=lambda other: (other != name, other)))


def _hardware(node: Node) -> str:
    return node.facts.get("hardware", "")


def take_out(tx: Transaction, name: str, why: str, now: datetime) -> None:
    """It gets no probe any more, until an operator brings it back."""
    node = tx.node(name, lock=True)
    if node is not None and not node.out:
        tx.save_node(replace(node, out=why))
        tx.post(Message("node", f"node:{name}:out:{now.isoformat()}", {"node": name}), now)


def bring_back(tx: Transaction, name: str, now: datetime) -> Node:
    """Errors: NotFound."""
    found = tx.node(name, lock=True)
    if found is None:
        known = ", ".join(sorted(node.name for node in tx.nodes())) or "none"
        raise NotFound(f"there is no node {name!r}", value=name, advice=f"known are: {known}")
    back = replace(found, out="")
    tx.save_node(back)
    tx.post(Message("node", f"node:{name}:back:{now.isoformat()}", {"node": name}), now)
    return back


def stranded(tx: Transaction, now: datetime) -> tuple[Probe, ...]:
    """Probes that are queued for one node that takes none now."""
    there = {node.name for node in running(tx.nodes(), now)}
    return tuple(probe for probe in tx.queued_for_nodes() if queues.node_of(probe.queue) not in there)
