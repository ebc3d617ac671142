"""A run as one document: what --json prints, and what is kept beside its logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.local.asked import Judged
from service.local.history import Title
from service.local.running import Run
from service.local.step import Step, named
from service.local.wrong_ends import WrongEnds
from service.search import Contradiction, Found, Suspects


def state_of(at: Step) -> str:
    match at.over:
        case Found():
            return "found"
        case Suspects() | Contradiction():
            return "suspects"
        case WrongEnds():
            return "refused"
    return "running"


def document(
    run: Run,
    folder: str,
    judged: Sequence[Judged],
    titles: Mapping[str, Title],
    at: Step | None = None,
    state: str = "",
) -> dict[str, Any]:
    terms = run.asked.terms
    return {
        "state": state or (state_of(at) if at is not None else "running"),
        "answer": _answer(at, run, titles),
        "problem": {"detail": at.over.why, "advice": at.over.advice} if at and isinstance(at.over, WrongEnds) else None,
        "repository": run.asked.repository,
        terms.old: list(run.asked.olds),
        terms.new: [run.asked.new],
        "merge_bases": list(run.task.bases),
        "candidates": len(run.task.range_),
        "command": list(run.asked.command),
        "folder": folder,
        "probes": [_probe(one, titles) for one in judged],
    }


def _answer(at: Step | None, run: Run, titles: Mapping[str, Title]) -> dict[str, Any] | None:
    match at.over if at is not None else None:
        case Found(sha=sha, confidence=confidence):
            return {
                "what": run.asked.terms.answer,
                "commits": [_title(sha, titles)],
                "confidence": confidence,
                "why": "",
            }
        case Suspects(why=why) | Contradiction(why=why) if at is not None:
            commits = [_title(sha, titles) for sha in named(at)]
            return {"what": run.asked.terms.answer, "commits": commits, "confidence": None, "why": why}
    return None


def _title(sha: str, titles: Mapping[str, Title]) -> dict[str, str]:
    title = titles.get(sha, Title(sha, "", "", ""))
    return {"sha": sha, "subject": title.subject, "author": title.author, "date": title.day}


def _probe(one: Judged, titles: Mapping[str, Title]) -> dict[str, Any]:
    seen, outcome = one.seen, one.seen.outcome
    return {
        "number": seen.number,
        **_title(seen.sha, titles),
        "purpose": seen.purpose.value,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "note": one.note,
        "exit_status": outcome.exit_status,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "began_at": seen.began_at.isoformat(),
        "seconds": round(seen.seconds, 3),
        "log": seen.log,
    }
