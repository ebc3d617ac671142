"""A bisection as it begins."""

from __future__ import annotations

from datetime import datetime

from service.domain.bisection import Bisection, Request
from service.domain.lifecycle import BisectionState


def begun(id: str, request: Request, submitter: str, now: datetime) -> Bisection:
    return Bisection(
        id,
        BisectionState.QUEUED,
        request,
        submitter,
        now,
        now,
        notes=request.notes,
        priority=request.priority,
        budget=request.budget,
        project=request.recipe.name,
        words=words(request),
    )


def words(request: Request) -> str:
    """What a text is looked for in when bisections are filtered; nothing that may be a secret."""
    made = request.reproduction
    code = (made.script, made.serve.command if made.serve else None, made.check, made.failure)
    told = (request.recipe.name, request.repo.rpartition("@")[2], *request.good, request.bad, *code)
    return "\n".join(each for each in told if each).lower()
