"""Whom the service tells what happens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.domain.lifecycle import BisectionState

#: What is told of bisections, by the state that one comes to; `ping` is sent when somebody asks for it.
EVENTS = tuple(f"bisection.{str(state).replace(' ', '-')}" for state in BisectionState)
PING = "ping"


@dataclass(frozen=True)
class Webhook:
    """`events`: kinds that are told, none is all. `project`, `submitter`: only of such bisections, None is any.
    `secret`: what deliveries are signed with. `off`: why it gets nothing any more, empty while it does.
    `failing_since`: of its first failure since something was delivered. `last_error`: of the last delivery, empty
    where that went well; `tried_at`: when that was."""

    id: str
    url: str
    secret: str
    created_at: datetime
    created_by: str
    events: tuple[str, ...] = ()
    project: str | None = None
    submitter: str | None = None
    off: str = ""
    failing_since: datetime | None = None
    last_error: str = ""
    tried_at: datetime | None = None
    delivered_at: datetime | None = None
