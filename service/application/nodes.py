"""Which nodes there are for a probe, and those that were taken out."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from service.application.ports import Transaction
from service.domain.bisection import Node

#: A node that has said nothing for so long has no room.
SILENT = timedelta(seconds=60)


def why_out(tx: Transaction, name: str) -> str:
    """Empty for a node that is in, or not known."""
    return next((node.out for node in tx.nodes() if node.name == name), "")


def alive(nodes: Collection[Node], now: datetime) -> tuple[Node, ...]:
    return tuple(node for node in nodes if node.state == "alive" and now - node.seen_at < SILENT)
