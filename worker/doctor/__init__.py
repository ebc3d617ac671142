"""`python -m worker doctor`: looks a node over with the worker's own settings, and says what to do. It changes nothing
and leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from subprocess import SubprocessError

import psutil
import redis

from worker.contract import VERSION
from worker.doctor import broker, cards, places, sandboxes, system
from worker.doctor.finding import Finding, Findings, problem, status
from worker.errors import NodeFault
from worker.settings import Settings

__all__ = ["Finding", "as_json", "as_text", "examine", "status", "summary", "wrong_setting"]
MARKS = {"ok": "ok     ", "warning": "WARNING", "problem": "PROBLEM"}


def examine(settings: Settings) -> Iterator[Finding]:
    """One after the other, as they are found. What fails while it is looked at is a problem, and the rest goes on."""
    checks: dict[str, Callable[[], Findings]] = {
        "settings": lambda: system.settings(settings),
        "secrets": lambda: system.secrets(settings),
        "passed": lambda: system.passed(settings),
        "redis": lambda: broker.broker(settings.redis_url, settings.node),
        "work_dir": lambda: places.work_dir(settings.work_dir),
        "left": lambda: places.left(settings.work_dir),
        "store": lambda: places.store(settings.store),
        "git": lambda: system.git(settings),
        "process": lambda: sandboxes.process(settings),
        "docker": lambda: sandboxes.docker(settings),
        "cgroups": sandboxes.groups,
        "gpus": lambda: cards.cards(settings),
        "gpus.leases": lambda: places.leases(settings),
        "models": lambda: places.model_cache(settings),
        "compilers": lambda: system.compilers(settings),
        "limits": system.limits,
        "shm": system.shm,
    }
    for name, look in checks.items():
        yield from _looked(name, look)


def _looked(name: str, look: Callable[[], Findings]) -> Findings:
    try:
        yield from look()
    except NodeFault as fault:
        yield problem(name, fault.message, fault.advice)
    except (OSError, redis.RedisError, psutil.Error, SubprocessError, UnicodeError) as error:
        yield problem(name, f"it could not be looked at: {error}", "See whether the worker's user may do so.")


def wrong_setting(complaint: str) -> Finding:
    """Nothing else can be looked at with such settings."""
    name, _, said = complaint.partition(": ")
    return problem("settings", f"{name}: {said}", f"Correct {name}, and ask the doctor again.")


def summary(findings: list[Finding]) -> str:
    problems, warnings = (sum(each.state == state for each in findings) for state in ("problem", "warning"))
    verdict = "This node cannot work as it is" if problems else "This node can work"
    return f"{verdict}: {problems} problems, {warnings} warnings.\n"


def as_text(finding: Finding) -> str:
    advice = f"\n{'':26}{finding.advice}" if finding.advice else ""
    return f"{MARKS[finding.state]} {finding.check:17} {finding.found}{advice}\n"


def as_json(node: str, findings: list[Finding]) -> str:
    counted = {state: sum(each.state == state for each in findings) for state in MARKS}
    told = {"node": node, "contract": VERSION, **counted, "findings": [asdict(each) for each in findings]}
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"
