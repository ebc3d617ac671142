"""What a request would come to: its commits, what it is likely to cost, and who could do it. Nothing is begun."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import quantiles

from service.application import keys as keys_of
from service.application import nodes as fitness
from service.application import prepare
from service.application.keys import Scope
from service.application.ports import Asked, History, Stock, Transaction
from service.domain.bisection import Bisection, Commit, Node, Origin, Problem, Request
from service.domain.recipe import Resources
from service.domain.recipe_rules import fits_model
from service.search import Evidence, Observation, Searching, conclusion

#: So many bisections are looked back at for how long things took, and of so many of the same project all runs.
LOOKED_BACK, COUNTED = 100, 10


@dataclass(frozen=True)
class Seconds:
    """Most of what was measured lies between them."""

    least: float
    most: float


@dataclass(frozen=True)
class Wheels:
    """Of the candidates: how many wheels and native builds are different. `..._there`: of them in stock; None where
    that cannot be told before a node has said what its image holds. `likely`: builds that will be made at most."""

    different: int
    natives: int
    different_there: int | None
    natives_there: int | None
    likely: int


@dataclass(frozen=True)
class Looked:
    """What the repository says."""

    good: tuple[Commit, ...]
    bad: Commit
    candidates: int
    probes: float
    notes: tuple[str, ...]
    scope: Scope


@dataclass(frozen=True)
class Serving:
    """A node, and why it could not serve it now; empty: it could."""

    node: str
    why_not: tuple[str, ...] = ()


@dataclass(frozen=True)
class Past:
    """Seconds that runs and native builds of this repository took, and what the last one was built in."""

    runs: tuple[float, ...] = ()
    builds: tuple[float, ...] = ()
    last: Bisection | None = None


@dataclass(frozen=True)
class Preview:
    """`problems`: for which it would be refused; `unread`: why the repository says nothing."""

    request: Request
    problems: tuple[Problem, ...] = ()
    looked: Looked | None = None
    unread: str = ""
    wheels: Wheels | None = None
    expected: Seconds | None = None
    nodes: tuple[Serving, ...] = ()
    notes: tuple[str, ...] = field(default=())


def look(history: History, bisection: Bisection, now: datetime) -> Looked:
    """Reads the repository. Errors: as of `prepare`."""
    made = prepare.prepare(history, bisection.request, Asked(bisection.created_at, now))
    known = prepare.known(bisection, made)
    commits = history.commits(known.request.repo, {*made.good_shas, made.bad_sha})
    goods = tuple(commits[sha] for sha in made.good_shas)
    ends = [Observation(made.bad_sha, "bad"), *(Observation(sha, "good") for sha in made.good_shas)]
    found = conclusion(made.range, Evidence(tuple(ends)))
    searched = found.expected_probes if isinstance(found, Searching) else 0.0
    probes = 1 + len(goods) + searched
    scope = keys_of.scope_of(history, known)
    return Looked(goods, commits[made.bad_sha], len(made.range), probes, made.notes, scope)


def past(tx: Transaction, request: Request) -> Past:
    """Of the same repository and recipe."""
    runs: list[float] = []
    last: Bisection | None = None
    alike = [each for each in tx.bisections(limit=LOOKED_BACK) if _alike(each.request, request)]
    for each in alike[:COUNTED]:
        last = each if last is None and each.setup.builder is not None else last
        for probe in tx.probes(each.id):
            if probe.started_at is not None and probe.finished_at is not None and probe.outcome is not None:
                runs.append((probe.finished_at - probe.started_at).total_seconds())
    builds = [one.seconds for one in tx.stock(request.repo) if one.seconds and one.origin is Origin.BUILT]
    return Past(tuple(runs), tuple(builds), last)


def _alike(one: Request, other: Request) -> bool:
    same = one.repo == other.repo and one.recipe.name == other.recipe.name
    return same and one.sandbox == other.sandbox and one.failure_in == other.failure_in


def as_built(bisection: Bisection, before: Past) -> Bisection:
    """With the image and Python that the last one had, by which wheels are known."""
    if before.last is None:
        return bisection
    return replace(bisection, setup=replace(bisection.setup, builder=before.last.setup.builder))


def wheels(looked: Looked, stock: Sequence[Stock], *, known: bool) -> Wheels | None:
    """None where nothing is built. `known`: by what keys wheels are in stock."""
    if not looked.scope.keys:
        return None
    found = [looked.scope.keys[sha] for sha in looked.scope.range.shas]
    contents = {each.content for each in found}
    natives = {each.native or each.content for each in found}
    there = {one.key for one in stock}
    natives_there = {one.native_key or one.key for one in stock if one.origin is not Origin.OVERLAY}
    missing = len(natives - natives_there) if known else len(natives)
    return Wheels(
        different=len(contents),
        natives=len(natives),
        different_there=len(contents & there) if known else None,
        natives_there=len(natives & natives_there) if known else None,
        likely=min(missing, math.ceil(looked.probes)),
    )


def expected(looked: Looked, made: Wheels | None, before: Past, width: int) -> Seconds | None:
    """None where nothing is known. With W probes in flight the search takes as many rounds as its logarithm to the
    base of W + 1: docs/search.md has the figures."""
    builds = made.likely if made is not None else 0
    if not before.runs or (builds and not before.builds):
        return None
    ends = 1 + len(looked.good)
    rounds = math.ceil(ends / width) + (looked.probes - ends) / math.log2(width + 1)
    run, build = _spread(before.runs), _spread(before.builds) if builds else Seconds(0.0, 0.0)
    least = rounds * run.least + build.least * math.ceil(builds / max(width, 1))
    return Seconds(least, rounds * run.most + build.most * builds)


def _spread(seconds: Sequence[float]) -> Seconds:
    if len(seconds) < 2:
        return Seconds(seconds[0], seconds[0])
    low, *_, high = quantiles(seconds, n=10, method="inclusive")
    return Seconds(low, high)


def serving(nodes: Collection[Node], wanted: Resources, now: datetime) -> tuple[Serving, ...]:
    ordered = sorted(nodes, key=lambda node: node.name)
    return tuple(Serving(node.name, tuple(_why_not(node, wanted, now))) for node in ordered)


def _why_not(node: Node, wanted: Resources, now: datetime) -> Iterator[str]:
    if node.state != "alive":
        yield f"it is {node.state}"
    elif now - node.seen_at >= fitness.SILENT:
        yield f"it has said nothing for {(now - node.seen_at).total_seconds():.0f} s"
    if node.out:
        yield f"it was taken out: {node.out}"
    if "run" not in node.roles:
        yield "it builds and runs no probes"
    if missing := sorted({*wanted.labels} - {*node.labels}):
        yield f"it lacks the labels {', '.join(missing)}"
    if missing := sorted({*wanted.models} - {*node.models}):
        yield f"it lacks the models {', '.join(missing)}"
    if wanted.gpus:
        have = sum(1 for gpu in node.gpus if fits_model(wanted, gpu.model))
        if have < wanted.gpus:
            of = f" that are {wanted.gpu}" if wanted.gpu else ""
            yield f"it has {have} of {wanted.gpus} GPUs{of}"
