"""Whom to tell what happens to bisections."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Webhook:
    """`events`: kinds that are told, none is all. `project`, `submitter`: only of such bisections, None is any.
    `secret`: what deliveries are signed with. `off`: why it gets nothing any more, empty while it does."""

    id: str
    url: str
    secret: str
    created_at: datetime
    created_by: str
    events: tuple[str, ...] = ()
    project: str | None = None
    submitter: str | None = None
    off: str = ""
