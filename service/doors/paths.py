"""Where things are on the web: the doors do not know each other, and their links lead from one to another."""

from __future__ import annotations

API = "/api/v1"


def bisection(id: str) -> str:
    return f"{API}/bisections/{id}"


def metric(id: str) -> str:
    return f"{bisection(id)}/metric"


def picture(id: str) -> str:
    """The metric, drawn."""
    return f"{bisection(id)}/metric.svg"


def page(id: str) -> str:
    """For people."""
    return f"/bisections/{id}"


def probe(id: str) -> str:
    return f"{API}/probes/{id}"


def log(probe_id: str) -> str:
    return f"{probe(probe_id)}/log"
