"""What people and programs ask of the API, by route, and how often."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import httpx

from benchmarks.api.filled import PROJECTS, SUBMITTERS, TRIED, Filled
from benchmarks.load.repository import Made

_LIST = "/api/v1/bisections"
FORMS = ("md", "html", "junit")


@dataclass(frozen=True)
class Asked:
    """`route`: by which name it is counted."""

    route: str
    path: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    right: int = 200


def mix(client: httpx.Client, filled: Filled, made: Made, count: int) -> list[Asked]:
    """`client`: to learn places in lists and tags by."""
    chance = random.Random(11)
    cursors = _cursors(client)
    tags = {id: client.get(f"{_LIST}/{id}").headers["etag"] for id in chance.sample(filled.ids, 40)}

    def one() -> str:
        """People look at what is new."""
        recent = filled.ids[-len(filled.ids) // 10 :]
        return chance.choice(recent if chance.random() < 0.7 else filled.ids)

    def narrowed(*texts: str) -> Asked:
        return Asked("list, narrowed", f"{_LIST}?{chance.choice(texts)}")

    def known() -> Asked:
        id = chance.choice(list(tags))
        return Asked("report, known (304)", f"{_LIST}/{id}", headers=(("If-None-Match", tags[id]),), right=304)

    kinds: dict[Callable[[], Asked], int] = {
        lambda: Asked("list", _LIST): 10,
        lambda: narrowed("state=searching", "state=found&limit=20", "sort=-ended", "state=failed"): 6,
        lambda: narrowed(f"project={chance.choice(PROJECTS)}", f"submitter=user-{chance.randrange(SUBMITTERS)}"): 6,
        lambda: Asked("list, by text", f"{_LIST}?text={chance.choice(['capture', 'report%2077', 'nowhere'])}"): 4,
        lambda: Asked("list, a later page", f"{_LIST}?cursor={quote(chance.choice(cursors))}"): 6,
        lambda: Asked("report", f"{_LIST}/{one()}"): 18,
        known: 18,
        lambda: Asked("probes", f"{_LIST}/{one()}/probes"): 8,
        lambda: Asked("a probe", f"/api/v1/probes/{one()}.{chance.randint(1, TRIED)}"): 6,
        lambda: Asked("events", f"{_LIST}/{one()}/events"): 6,
        lambda: Asked("report, written", f"{_LIST}/{one()}/report?format={chance.choice(FORMS)}"): 3,
        lambda: Asked("builds, nodes, recipes", f"/api/v1/{chance.choice(['builds', 'nodes', 'recipes'])}"): 6,
        lambda: _submitted(made, chance): 3,
    }  # fmt: skip
    return [kind() for kind in chance.choices(list(kinds), list(kinds.values()), k=count)]


def _cursors(client: httpx.Client) -> list[str]:
    """Of the first pages of the list."""
    found: list[str] = []
    while len(found) < 10:
        after = client.get(_LIST, params={"cursor": found[-1]} if found else {}).json()["next"]
        if after is None:
            break
        found.append(_cursor(after))
    return found


def _cursor(after: str) -> str:
    """`next` may be the cursor itself or a whole address."""
    query = httpx.QueryParams(urlsplit(after).query)
    return query.get("cursor", after)


def _submitted(made: Made, chance: random.Random) -> Asked:
    body = {
        "project": "source",
        "repo": str(made.path),
        "good": made.shas[0],
        "bad": made.shas[-1],
        "script": f"python -m engine --seed {chance.randrange(10**9)}\n",
    }
    kind = (("Content-Type", "application/json"),)
    return Asked("submit", _LIST, "POST", kind, json.dumps(body), right=201)
