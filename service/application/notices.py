"""What webhooks are told: made in the transaction of its cause, as things are then, and never changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime

from service.application.hooks import NOTICE
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Message
from service.domain.webhook import PING, Webhook

_LOGIN = re.compile(r"://[^/@\s]*@")
MOST_WHY = 1000


def of_state(tx: Transaction, id: str, state: str, at: datetime) -> Iterator[Message]:
    """That a bisection has come to a state, for each webhook that wants to know."""
    event = f"bisection.{state.replace(' ', '-')}"
    wanted = [hook for hook in tx.webhooks() if not hook.off and (not hook.events or event in hook.events)]
    if not wanted:
        return
    found = tx.bisection(id)
    body: dict[str, object] = {"type": event, "timestamp": at.isoformat(), "data": _summary(found), "links": _links(id)}
    for hook in wanted:
        if hook.project in (None, found.project) and hook.submitter in (None, found.submitter):
            yield _notice(hook, f"{id}:{event}:{at.timestamp():.6f}", body)


def ping(hook: Webhook, at: datetime) -> Message:
    body: dict[str, object] = {"type": PING, "timestamp": at.isoformat(), "data": {"webhook": hook.id}, "links": {}}
    return _notice(hook, f"{PING}:{at.timestamp():.6f}", body)


def again(message: Message, attempt: int) -> Message:
    """The same, under another key of the outbox."""
    base = message.key.rpartition("#")[0]
    return Message(NOTICE, f"{base}#{attempt}", {**message.payload, "attempt": attempt})


def _notice(hook: Webhook, about: str, body: dict[str, object]) -> Message:
    key = f"{NOTICE}:{hook.id}:{about}"
    id = f"msg_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    return Message(NOTICE, f"{key}#1", {"webhook": hook.id, "id": id, "attempt": 1, "body": body})


def _summary(found: Bisection) -> dict[str, object]:
    """Small, and nothing in it that may be a secret: no script, no environment, no password of the repository."""
    answer, problem = found.answer, found.problem
    return {
        "id": found.id,
        "state": str(found.state),
        "project": found.project,
        "repo": _LOGIN.sub("://", found.request.repo),
        "submitter": found.submitter,
        "good": list(found.request.good),
        "bad": found.request.bad,
        "good_shas": list(found.good_shas),
        "bad_sha": found.bad_sha,
        "candidates": found.candidates,
        "answer": None
        if answer is None
        else {"shas": list(answer.shas), "why": answer.why[:MOST_WHY], "confidence": answer.confidence},
        "problem": None if problem is None else {"title": problem.title, "detail": problem.detail[:MOST_WHY]},
        "created_at": found.created_at.isoformat(),
        "ended_at": found.ended_at.isoformat() if found.ended_at else None,
    }


def _links(id: str) -> dict[str, object]:
    """From the service's address on, which it does not know for sure."""
    return {"bisection": f"/api/v1/bisections/{id}", "report": f"/api/v1/bisections/{id}/report"}
