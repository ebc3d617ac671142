"""The calls of the API that are one request and one answer, by resource; docs/api.md tells of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from firstbad.call import Call, got, part, posted
from service.domain.budget import Priority
from service.domain.lifecycle import BisectionState
from service.doors.api.views import (
    BisectionList,
    BisectionView,
    BuildList,
    BuildView,
    CurveView,
    EventList,
    NodeList,
    NodeView,
    ProbeList,
    ProbeView,
    ReportView,
    RequestView,
)


def submit(document: Mapping[str, Any], key: str | None = None) -> Call[BisectionView]:
    """`document`: the keys of a request file (docs/requests.md). `key`: sent again with it, it begins no second."""
    return posted("/bisections", BisectionView, document, key=key)


def complete(document: Mapping[str, Any]) -> Call[RequestView]:
    """What `submit` would begin, with all defaults and notes."""
    return posted("/requests", RequestView, document)


def bisection(id: str) -> Call[ReportView]:
    return got(f"/bisections/{part(id)}", ReportView)


def bisections(states: Collection[BisectionState] = (), limit: int = 50) -> Call[tuple[BisectionView, ...]]:
    listed = got("/bisections", BisectionList, state=tuple(sorted(states)), limit=limit)
    return listed.then(lambda found: found.items)


def cancel(id: str) -> Call[BisectionView]:
    return Call("DELETE", f"/bisections/{part(id)}", BisectionView.model_validate_json, again=True)


def pause(id: str) -> Call[BisectionView]:
    return posted(f"/bisections/{part(id)}/pause", BisectionView)


def resume(id: str) -> Call[BisectionView]:
    return posted(f"/bisections/{part(id)}/resume", BisectionView)


def prioritize(id: str, priority: Priority) -> Call[BisectionView]:
    change = {"priority": str(priority)}
    return Call("PATCH", f"/bisections/{part(id)}", BisectionView.model_validate_json, json=change, again=True)


def judge_again(id: str) -> Call[tuple[ProbeView, ...]]:
    """The probes whose verdict changed."""
    return posted(f"/bisections/{part(id)}/judge", ProbeList).then(lambda found: found.items)


def probes(id: str) -> Call[tuple[ProbeView, ...]]:
    return got(f"/bisections/{part(id)}/probes", ProbeList).then(lambda found: found.items)


def builds(id: str) -> Call[tuple[BuildView, ...]]:
    return got(f"/bisections/{part(id)}/builds", BuildList).then(lambda found: found.items)


def curve(id: str) -> Call[CurveView]:
    return got(f"/bisections/{part(id)}/metric", CurveView)


def probe(id: str) -> Call[ProbeView]:
    return got(f"/probes/{part(id)}", ProbeView)


def events(id: str, after: int = 0) -> Call[EventList]:
    return got(f"/bisections/{part(id)}/events", EventList, after=after)


def nodes() -> Call[tuple[NodeView, ...]]:
    return got("/nodes", NodeList).then(lambda found: found.items)


def return_node(name: str) -> Call[NodeView]:
    return posted(f"/nodes/{part(name)}/return", NodeView)
