"""The calls of the API that are one request and one answer, by resource; docs/api.md tells of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from firstbad.call import Call, got, part, posted
from service.domain.budget import Priority
from service.domain.lifecycle import BisectionState
from service.doors.api.views import (
    BisectionList,
    BisectionView,
    BuildList,
    CurveView,
    EventList,
    NodeList,
    NodeView,
    ProbeList,
    ProbeView,
    RecipeList,
    RecipeView,
    ReportView,
)
from service.doors.api.views.previews import DraftView, DryRunView

#: Of a page where all are wanted, and the most that one may have.
PAGE = 200
#: By when they were submitted or have ended; with a minus the last first.
Sort = Literal["-created", "created", "-ended", "ended"]


def submit(document: Mapping[str, Any], key: str | None = None) -> Call[BisectionView]:
    """`document`: the keys of a request file (docs/requests.md). `key`: sent again with it, it begins no second."""
    return posted("/bisections", BisectionView, document, key=key)


def dry_run(document: Mapping[str, Any]) -> Call[DryRunView]:
    """What `submit` would come to: its commits, cost and nodes, with all defaults and notes. Nothing is begun."""
    return posted("/bisections", DryRunView, document, dry_run="true")


def parse(text: str, project: str | None = None) -> Call[DraftView]:
    """What the text of an issue says of a request, and what is missing. `project`: a recipe's name."""
    return posted("/bisections/parse", DraftView, {"text": text, **({"project": project} if project else {})})


def bisection(id: str) -> Call[ReportView]:
    return got(f"/bisections/{part(id)}", ReportView)


def changed(id: str, wait_s: int) -> Call[ReportView]:
    """As soon as it has changed or has ended; else after `wait_s`."""
    return got(f"/bisections/{part(id)}", ReportView, wait=f"{wait_s}s")


def bisections(
    states: Collection[BisectionState] = (),
    limit: int = 50,
    *,
    project: str | None = None,
    submitter: str | None = None,
    text: str | None = None,
    sort: Sort | None = None,
) -> Call[tuple[BisectionView, ...]]:
    """The first of them. `text`: anywhere in what was asked for. `sort`: newest first without."""
    return bisection_pages(states, limit=limit, project=project, submitter=submitter, text=text, sort=sort).then(
        lambda found: found.items
    )


def bisection_pages(states: Collection[BisectionState] = (), **more: Any) -> Call[BisectionList]:
    return got("/bisections", BisectionList, state=tuple(sorted(states)), **more)


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


def probes(id: str) -> Call[ProbeList]:
    return got(f"/bisections/{part(id)}/probes", ProbeList)


def builds(id: str) -> Call[BuildList]:
    return got(f"/bisections/{part(id)}/builds", BuildList)


def curve(id: str) -> Call[CurveView]:
    return got(f"/bisections/{part(id)}/metric", CurveView)


def probe(id: str) -> Call[ProbeView]:
    return got(f"/probes/{part(id)}", ProbeView)


def events(id: str, after: int = 0) -> Call[EventList]:
    return got(f"/bisections/{part(id)}/events", EventList, after=after)


def nodes() -> Call[NodeList]:
    return got("/nodes", NodeList)


def return_node(name: str) -> Call[NodeView]:
    return posted(f"/nodes/{part(name)}/return", NodeView)


def recipes() -> Call[tuple[RecipeView, ...]]:
    return got("/recipes", RecipeList).then(lambda found: found.items)


def recipe(name: str) -> Call[RecipeView]:
    return got(f"/recipes/{part(name)}", RecipeView)
