"""Rows as the code of each version of the schema wrote them, one of each table at least."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SHA = "072d7e5" + "0" * 33
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
REQUEST = {
    "repo": "https://example.org/engine.git",
    "good": ["v1.0"],
    "bad": "main",
    "reproduction": {"script": "make test", "serve": None, "check": None, "failure": "Boom"},
    "recipe": {"name": "python", "build_command": "uv build", "image": None, "network": "none", "env": {"A": "b"}},
    "sandbox": "process",
    "width": 2,
    "first_parent": False,
    "timeout_s": 12.5,
    "hang_is_bad": False,
}
LOG = {"path": "logs/b1.1.1.log.zst", "bytes": 10**12, "cut": True, "last_lines": ["the end", ""]}


def outcome(revision: str) -> dict[str, Any]:
    """A run that printed one number."""
    common = {"ended_in": "script", "exit_status": 1, "log": LOG, "environment": {"python": "3.11"}}
    if revision < "0004":
        return {**common, "samples": [2.5]}
    measured = {"name": "metric", "value": 2.5, "unit": "", "found": 1, "problem": ""}
    return {**common, "measurements": [measured]}


def rows(revision: str) -> dict[str, list[dict[str, Any]]]:
    later = AT + timedelta(seconds=60)
    bisection = {
        "id": "b1", "state": "searching", "request": REQUEST, "submitter": "ada", "created_at": AT, "updated_at": later,
        "good_shas": [SHA], "bad_sha": SHA[::-1], "candidates": 249, "candidates_left": 12, "expected_probes": 3.5,
        "notes": ["a note"], "problem": None, "answer": {"shas": [SHA], "why": "w", "confidence": 0.5},
        "ended_at": None,
    }  # fmt: skip
    fault = {"kind": "disk-full", "message": "full", "advice": "free some", "outcome": outcome(revision)}
    probe = {
        "id": "b1.1", "bisection_id": "b1", "number": 1, "sha": SHA, "trial": 1, "purpose": "bad end",
        "state": "judged", "planned_at": AT, "attempt": 2, "build_key": "k1", "node": "n1", "queued_at": AT,
        "started_at": AT, "finished_at": later, "silent_since": None, "outcome": outcome(revision), "faults": [fault],
        "verdict": "bad", "reason": "exit status 1",
    }  # fmt: skip
    build = {
        "key": "k1", "state": "built", "repo": REQUEST["repo"], "sha": SHA, "bisection_id": "b1", "queued_at": AT,
        "attempt": 1, "node": "n1", "started_at": AT, "finished_at": later, "silent_since": None, "seconds": 0.5,
        "wheel_name": "x-1.whl", "wheel_path": "wheels/k1/1/x-1.whl", "wheel_sha256": "ab" * 32,
        "wheel_bytes": 5 * 2**30, "log": LOG, "failure": None, "faults": [],
    }  # fmt: skip
    node = {"name": "n1", "slots": 2, "seen_at": AT, "state": "alive", "facts": {"docker": "28"}}
    if revision >= "0002":
        bisection["setup"] = {"as_of": "2026-01-01T00:00:00Z", "survey": {"attempt": 1}, "builder": None}
        build |= {"native_key": "n", "base_key": None, "origin": "built", "notes": [], "ahead": False, "used_at": later}
        node["roles"] = ["run"]
    if revision >= "0003":
        bisection["setup"] |= {"gpu_class": "h100"}
        probe |= {"target": "n1", "own_day": True}
        node["gpus"] = [{"index": 0, "model": "H100", "gpu_class": "h100", "memory_bytes": 80 * 10**9}]
        node["out"] = "a card fell off the bus"
    if revision >= "0005":
        bisection |= {"priority": "high", "paused_at": later, "paused_s": 5.5}
        turn = {"turn": "0 ada", "asked_at": AT, "held": True, "due_at": None, "sent_at": AT, "log_removed_at": None}
        probe |= {**turn, "queue": "gpu.h100", "gpu_leased_s": 4.5, "gpu_used_s": 3.5, "log_removed_at": later}
        probe |= {"leased_at": AT}
        build |= turn
        node |= {"labels": ["nvlink"], "models": ["Qwen/Qwen3-8B"]}
    if revision >= "0007":
        override = {"sha": SHA, "verdict": "good", "by": "ada", "why": "seen by hand", "at": later.isoformat()}
        bisection |= {"budget": {"probes": 30, "wall_s": None, "gpu_s": None}, "overrides": [override]}
        bisection |= {"clone_of": "b0", "project": "python", "words": "engine"}
    waiting = {"state": "queued", "outcome": None, "faults": [], "verdict": None, "reason": "", "finished_at": None}
    queued = {**probe, **waiting, "id": "b1.2", "number": 2, "attempt": 1, "node": None, "started_at": None}
    running = {**queued, "id": "b1.3", "number": 3, "state": "running", "node": "n1", "started_at": later}
    running |= {"target": None} if revision >= "0003" else {}
    made = {
        "bisections": [bisection],
        "probes": [probe, queued, running],
        "builds": [build, {**build, "key": "k2", "state": "queued", "wheel_path": None, "finished_at": None}],
        "events": [{"id": 7, "bisection_id": "b1", "at": AT, "kind": "verdict", "data": {"probe": "b1.1"}}],
        "outbox": [
            {"id": 3, "topic": "probe", "key": "probe:b1.2:1", "payload": {"id": "b1.2", "attempt": 1},
             "posted_at": AT, "delivered_at": None},
        ],
        "nodes": [node],
    }  # fmt: skip
    if revision >= "0006":
        made["counted"] = [{"name": "all", "until": AT}]
        made["tallies"] = [{"name": "probes", "label": "bad", "bound": 60.0, "count": 2, "total": 3.5}]
    if revision >= "0007":
        made["tokens"] = [
            {"id": "t1", "name": "nightly", "prefix": "fb_1234", "hash": "ab" * 32, "scope": "submit", "created_at": AT,
             "created_by": "ada", "expires_at": later, "revoked_at": None, "used_at": AT},
        ]  # fmt: skip
        made["sessions"] = [
            {"hash": "cd" * 32, "name": "github:ada", "scope": "operate", "created_at": AT, "expires_at": later},
        ]  # fmt: skip
        made["webhooks"] = [
            {"id": "w1", "url": "https://example.org/hook", "secret": "s", "created_at": AT, "created_by": "ada",
             "events": ["state"], "project": "python", "submitter": None, "off": "", "failing_since": later,
             "last_error": "it answered 500", "tried_at": later, "delivered_at": None},
        ]  # fmt: skip
    return made
