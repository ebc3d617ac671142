"""The calls by which a person steers a bisection, and passes on what it found: docs/actions.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from firstbad.call import Call, part, posted
from service.doors.api.views import BisectionView, ProbeView

#: `none` takes back what was said before.
Said = Literal["good", "bad", "skip", "none"]
Format = Literal["json", "md", "html", "log", "junit"]


def override(id: str, commit: str, verdict: Said, why: str) -> Call[BisectionView]:
    """`commit`: its SHA, or how that begins."""
    said = {"commit": commit, "verdict": verdict, "why": why}
    return posted(f"/bisections/{part(id)}/overrides", BisectionView, said)


def reprobe(id: str, commit: str, why: str, key: str | None = None) -> Call[ProbeView]:
    """One more run. `key`: sent again with it, it begins no second one."""
    return posted(f"/bisections/{part(id)}/probes", ProbeView, {"commit": commit, "why": why}, key=key)


def extend(id: str, budget: Mapping[str, Any]) -> Call[BisectionView]:
    """`budget`: the limits that change, as in a request; None takes one off."""
    change = {"budget": dict(budget)}
    return Call("PATCH", f"/bisections/{part(id)}", BisectionView.model_validate_json, json=change, again=True)


def clone(id: str, changes: Mapping[str, Any] | None = None, key: str | None = None) -> Call[BisectionView]:
    """`changes`: keys of a request; None takes one out. `key`: sent again with it, it begins no second one."""
    return posted(f"/bisections/{part(id)}/clone", BisectionView, dict(changes or {}), key=key)


def report(id: str, format: Format = "json") -> Call[bytes]:
    """`log`: as of git bisect log."""
    return Call("GET", f"/bisections/{part(id)}/report", bytes, params={"format": format}, again=True)
