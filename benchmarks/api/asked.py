"""A steady load of requests: how long each route takes to answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.api.filled import Filled
from benchmarks.api.mix import mix
from benchmarks.api.served import Served, run
from benchmarks.load.repository import Made
from benchmarks.search.table import Row

AIM_MS = 50.0
#: Seconds of the same load before what is measured: modules, caches and connections.
WARM_UP_S = 3.0


@dataclass(frozen=True)
class Answered:
    """`routes`: by name, `seconds`, `wrong` statuses and `bytes`, as client.py tells them. Processor time in seconds:
    `cpu_s` of the API, `started_cpu_s` of the processes that it started, `client_cpu_s` of the client."""

    rate: float
    routes: dict[str, dict[str, Any]]
    cpu_s: float
    started_cpu_s: float
    client_cpu_s: float
    connections: int
    rss_mb: float

    @property
    def wrong(self) -> int:
        """Our own fault; what is refused is told in the table."""
        return sum(status >= 500 for found in self.routes.values() for status in found["wrong"])


def measure(
    api: Served, filled: Filled, made: Made, folder: Path, rate: float, seconds: float, tokens: list[str]
) -> Answered:
    headers = {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}
    with httpx.Client(base_url=api.url, headers=headers, trust_env=False, timeout=30) as client:
        asked = [asdict(one) for one in mix(client, filled, made, round(rate * (seconds + WARM_UP_S)))]
    first = round(rate * WARM_UP_S)
    _load(api, folder, asked[:first], rate, tokens)
    before = api.cpu_s()
    found = _load(api, folder, asked[first:], rate, tokens)
    cpu = [now - then for now, then in zip(api.cpu_s(), before, strict=True)]
    return Answered(rate, found["routes"], *cpu, found["cpu_s"], found["connections"], api.rss_mb)


def _load(api: Served, folder: Path, asked: list[dict[str, Any]], rate: float, tokens: list[str]) -> dict[str, Any]:
    plan = folder / "plan"
    plan.write_text(json.dumps({"asked": asked, "rate": rate, "tokens": tokens}))
    told, _ = run("client", api.url, str(plan)).communicate()
    found: dict[str, Any] = json.loads(told)
    return found


def rows(answered: Answered) -> Iterator[Row]:
    for route in sorted(answered.routes, key=lambda name: -len(answered.routes[name]["seconds"])):
        found = answered.routes[route]
        yield _row(route, found["seconds"], found["wrong"])
    every = [second for found in answered.routes.values() for second in found["seconds"]]
    yield _row("all", every, [status for found in answered.routes.values() for status in found["wrong"]])
    cpu = (answered.cpu_s, answered.started_cpu_s, answered.client_cpu_s)
    yield Row(
        "processor time of a request: the API; git; the client",
        "",
        "; ".join(f"{1000 * each / len(every):.1f} ms" for each in cpu),
    )
    yield Row("memory of the API; connections", "", f"{answered.rss_mb:.0f} MB; {answered.connections}")


def _row(route: str, seconds: list[float], wrong: list[int]) -> Row:
    p50, p99, most = (1000 * float(value) for value in np.percentile(seconds, [50, 99, 100]))
    told = f"; answered otherwise: {sorted(set(wrong))}, {len(wrong)} times" if wrong else ""
    ours = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.0f} ms{told}"
    return Row(f"{route} ({len(seconds)})", f"p99 {AIM_MS:.0f} ms", ours, reached=p99 < AIM_MS)
